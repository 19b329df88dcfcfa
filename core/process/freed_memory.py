"""Keeps freed memory for the next use: a training step frees and allocates the same arrays.

By default glibc returns arrays of a megabyte to the kernel as soon as they are freed. The kernel
fills each page with zeros when it is touched again, which took a seventh of a training step of
784-400-400-10 (docs/benchmarks.md). Source: glibc's manual, "Malloc Tunable Parameters".
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # <malloc.h>
LARGE_BYTES = 64 * 2**20  # what is larger, such as a data set, is still returned at once
KEPT_BYTES = 512 * 2**20  # the most freed memory that is kept


def keep_freed_memory() -> bool:
    """Let this process keep freed memory; False where the C library is not glibc."""
    mallopt = _function("mallopt")
    if mallopt is None:
        return False
    return all((mallopt(_MMAP_THRESHOLD, LARGE_BYTES), mallopt(_TRIM_THRESHOLD, KEPT_BYTES)))


def return_freed_memory() -> bool:
    """Return what was kept to the kernel; False where the C library is not glibc."""
    trim = _function("malloc_trim")
    return trim is not None and bool(trim(0))


def _function(name: str) -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
