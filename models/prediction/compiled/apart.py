"""Compiles the kernels in a process of its own, which leaves them in numba's cache.

numba compiles for half a minute and holds Python's lock meanwhile: requests that threads of the
same process answer take several times as long.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

_CALLED = ("propagate", "sample", "numbers", "classes", "shaped", "quantiles")  # from Python
_POLL_SECONDS = 0.2


def is_cached(kernels: ModuleType) -> bool:
    """Whether numba's cache has these kernels, be it for another processor, or cannot keep any."""
    return all(_is_cached(getattr(kernels, name)) for name in _CALLED)


def _is_cached(kernel: Any) -> bool:
    folder = kernel.stats.cache_path
    return folder is None or any(Path(folder).glob(f"*.{kernel.__qualname__}-*.nbi"))


def fill_cache() -> None:
    """Compile all kernels in a child, which ends early if this process ends."""
    command = [sys.executable, "-P", "-m", "models.prediction.compiled"]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(  # noqa: S603 – our own command
        command, stdin=subprocess.DEVNULL, env=one_thread
    ) as child:
        while child.poll() is None:
            if not threading.main_thread().is_alive():
                child.kill()
            try:
                child.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
