"""Keeps freed memory for the next use: a training step frees and allocates the same arrays.

By default glibc returns arrays of a megabyte to the kernel as soon as they are freed. The kernel
fills each page with zeros when it is touched again, which took a seventh of a training step of
784-400-400-10 (docs/benchmarks.md). Source: glibc's manual, "Malloc Tunable Parameters".
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # <malloc.h>
KEPT_BYTES = 512 * 2**20  # the most freed memory that is kept
LARGE_SHARE = 8  # 1/8 of it or more, such as a data set, is still returned at once
# The arrays of a request's summaries have up to a megabyte. A service has little memory to spare.
SERVICE_BYTES = 64 * 2**20


def keep_freed_memory(kept_bytes: int = KEPT_BYTES) -> bool:
    """Let this process keep freed memory; False where the C library is not glibc.

    Args:
        kept_bytes: the most that each of its threads keeps; what is an eighth of it or more is
            returned at once.
    """
    mallopt = _function("mallopt")
    if mallopt is None:
        return False
    large = mallopt(_MMAP_THRESHOLD, kept_bytes // LARGE_SHARE)
    return all((large, mallopt(_TRIM_THRESHOLD, kept_bytes)))


def return_freed_memory() -> bool:
    """Return what was kept to the kernel; False where the C library is not glibc."""
    trim = _function("malloc_trim")
    return trim is not None and bool(trim(0))


def _function(name: str) -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
