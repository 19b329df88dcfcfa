"""Queries with a time limit, for scrapes and health checks."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

DATABASE_SECONDS = 2.0  # a scrape or a health check waits no longer

T = TypeVar("T")


class BoundedQuery(Generic[T]):
    """A database query with a time limit.

    It runs in a daemon thread, and starts again only after it has returned. So a database that
    hangs blocks one thread, not one per scrape, and the process can still end.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._running: Future[T] | None = None
        self._lock = threading.Lock()

    def start(self) -> "Future[T]":
        """The result of the running call of `read`, or of a new call if none is running."""
        with self._lock:
            if self._running is None or self._running.done():
                self._running = Future()
                threading.Thread(target=self._run, args=(self._running,), daemon=True).start()
            return self._running

    def result(self) -> T:
        """The result of `read`. Also raises its exceptions.

        Raises:
            TimeoutError: `read` has not returned within `DATABASE_SECONDS`.
        """
        return self.start().result(DATABASE_SECONDS)

    def _run(self, running: "Future[T]") -> None:
        try:
            running.set_result(self._read())
        except BaseException as error:
            running.set_exception(error)
