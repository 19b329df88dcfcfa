"""Threads that do something at the same moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(work: Callable[[int], T], number: int) -> list[T]:
    """What each of so many threads returns, by its index; the first error is raised."""
    start = threading.Barrier(number)

    def run(index: int) -> T:
        start.wait()
        return work(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))
