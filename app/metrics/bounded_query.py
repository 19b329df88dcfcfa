"""Queries with a time limit, for scrapes and health checks."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

DATABASE_SECONDS = 2.0  # a scrape or a health check waits no longer

T = TypeVar("T")


class BoundedQuery(Generic[T]):
    """A database query with a time limit.

    It runs in a daemon thread, and is started again only after it has returned: a database that
    hangs takes one thread, not one per scrape, and does not keep the process from ending.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._running: Future[T] | None = None
        self._lock = threading.Lock()

    def start(self) -> "Future[T]":
        """What `read` will return or raise: of the call that runs, or else of a new one."""
        with self._lock:
            if self._running is None or self._running.done():
                self._running = Future()
                threading.Thread(target=self._run, args=(self._running,), daemon=True).start()
            return self._running

    def result(self) -> T:
        """What `read` returns.

        Raises:
            TimeoutError: it has not returned within `DATABASE_SECONDS`.
        """
        return self.start().result(DATABASE_SECONDS)

    def _run(self, running: "Future[T]") -> None:
        try:
            running.set_result(self._read())
        except BaseException as error:
            running.set_exception(error)
