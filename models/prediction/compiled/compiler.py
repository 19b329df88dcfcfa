"""Compiles the kernels once per process, in the background.

Importing numba and compiling take seconds. Until the kernels are ready, and where numba is missing
or fails, predictions use torch. A service has a child compile (`apart`), and reads what it cached.
"""

import importlib
import logging
import threading
from functools import cache
from types import ModuleType

from models.prediction.compiled import apart

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
            if in_child and not apart.is_cached(kernels):
                apart.fill_cache()
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
