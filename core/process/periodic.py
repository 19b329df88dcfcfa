"""A thread that repeats a function until it is stopped."""

import threading
from collections.abc import Callable
from contextvars import copy_context

import structlog

log = structlog.get_logger()


class Periodic:
    """A daemon thread that calls `work` every `seconds`.

    Exceptions of `work` are logged as "`name` failed"; the next call follows as usual. Log lines
    and spans have the context variables of the place that created this object.

    Args:
        at_once: whether to make the first call without waiting before it.
    """

    def __init__(
        self, name: str, seconds: float, work: Callable[[], None], *, at_once: bool = False
    ) -> None:
        self._seconds, self._work, self._at_once = seconds, work, at_once
        self._failure = f"{name} failed"
        self.stopped = threading.Event()
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """Stop calling `work`. With `wait`, return after a call that is running."""
        self.stopped.set()
        if wait and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        if self._at_once:
            self._call()
        while not self.stopped.wait(self._seconds):
            self._call()

    def _call(self) -> None:
        try:
            self._work()
        except Exception as error:  # no exception may end the thread
            log.warning(self._failure, error=str(error))
