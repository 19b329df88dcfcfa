"""Work that overlaps: what is read ahead of use, and written behind it."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
AHEAD = 2  # items that are made while one is used
_END = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, which a thread makes `AHEAD` before they are used."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(1) as maker:
        make = partial(maker.submit, next, items, _END)
        waiting.extend(make() for _ in range(AHEAD))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(make())
            yield item


@contextmanager
def behind(use: Callable[[T], object]) -> Iterator[Callable[[T], None]]:
    """A function that calls `use` in a thread, and waits while the call before is not done.

    An error of a call is raised by the next one, or by the end of the block.
    """
    with ThreadPoolExecutor(1) as user:
        waiting: list[Future[Any]] = []

        def later(item: T) -> None:
            while waiting:
                waiting.pop().result()
            waiting.append(user.submit(use, item))

        yield later
        while waiting:
            waiting.pop().result()
