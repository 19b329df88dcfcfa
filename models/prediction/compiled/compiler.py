"""Compiles the kernels once per process, in the background.

Importing numba takes seconds, and compiling half a minute. Until the kernels are ready, and where
numba is missing or fails, predictions use torch. numba holds Python's lock while it compiles: then
requests that threads of the same process answer take several times as long. So a service has a
child compile, and reads what it left in numba's cache.
"""

import importlib
import logging
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

_CALLED = ("propagate", "sample", "numbers", "classes", "shaped", "quantiles")  # from Python
_POLL_SECONDS = 0.2

log = logging.getLogger(__name__)


class Compiler:
    """The kernels of this process, once something has called `start`."""

    def __init__(self) -> None:
        self.kernels: ModuleType | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, *, in_child: bool = False) -> None:
        """Begin to compile, unless it has begun. Returns at once.

        Args:
            in_child: whether a child compiles what is not cached, so that other threads go on.
        """
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._compile, args=[in_child], name="compile kernels"
                )
                self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Start, and wait until the kernels are ready; returns whether they are.

        Args:
            seconds: to wait at most; None waits to the end.
        """
        self.start()
        assert self._thread is not None
        self._thread.join(seconds)
        return self.kernels is not None

    def _compile(self, in_child: bool) -> None:
        """Call each kernel once. A process that ends waits for the one that is being compiled."""
        try:
            kernels = importlib.import_module("models.prediction.compiled.kernels")
            examples = importlib.import_module("models.prediction.compiled.examples")
            if in_child and not is_cached(kernels):
                fill_cache()
            for call in examples.calls(kernels):
                if not threading.main_thread().is_alive():
                    return
                call()
        except ImportError as error:
            log.info("predictions use torch: no numba to compile kernels: %s", error)
            return
        except Exception as error:
            log.warning("predictions use torch: the kernels cannot be compiled: %s", error)
            return
        self.kernels = kernels


@cache
def compiler() -> Compiler:
    """The compiler of this process."""
    return Compiler()


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
