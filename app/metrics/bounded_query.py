"""A question to the database that a scrape waits for only so long."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

DATABASE_SECONDS = 2.0  # a scrape waits no longer: what needs no database is told without it


class BoundedQuery(Generic[T]):
    """Asks in a thread of its own, and not again while an answer is owed: a database that hangs
    takes one thread, not one per scrape.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._asked: Future[T] | None = None
        self._lock = threading.Lock()

    def answer(self) -> T:
        """What `read` returns, or raises.

        Raises:
            TimeoutError: if it has not done so within `DATABASE_SECONDS`.
        """
        return self._ask().result(DATABASE_SECONDS)

    def _ask(self) -> "Future[T]":
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked = Future()
                threading.Thread(target=self._answer, args=(self._asked,), daemon=True).start()
            return self._asked

    def _answer(self, asked: "Future[T]") -> None:
        try:
            asked.set_result(self._read())
        except BaseException as error:
            asked.set_exception(error)
