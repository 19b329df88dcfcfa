"""The one thread that computes predictions, and the queue in front of it.

One thread, because torch parallelises inside an operation: two at once would only fight for cores.
Work is taken in the order in which it came. What a queue entry is, is decided here alone.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Computed(Generic[T]):
    """A result, how long it waited for the thread, and how long it ran."""

    value: T
    queue_seconds: float
    compute_seconds: float


@dataclass(frozen=True)
class _Entry(Generic[T]):
    compute: Callable[[], T]
    future: Future[Computed[T]]
    submitted: float


class Engine:
    """Runs what is submitted, one after the other; a cancelled future that waits never runs."""

    def __init__(self, num_threads: int) -> None:
        self._entries: SimpleQueue[_Entry[Any] | None] = SimpleQueue()
        self._running_since: float | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(num_threads,), name="engine", daemon=True
        )
        self._thread.start()

    def submit(self, compute: Callable[[], T]) -> Future[Computed[T]]:
        """Queue `compute`. The future can be cancelled until the thread has taken it."""
        if self._closing.is_set():
            raise RuntimeError("the engine is closed")
        future: Future[Computed[T]] = Future()
        self._entries.put(_Entry(compute, future, perf_counter()))
        return future

    def running_seconds(self) -> float:
        """Age of the work at hand, 0 when idle; infinite when the thread has died."""
        if not self._thread.is_alive():
            return float("inf")
        since = self._running_since
        return 0.0 if since is None else perf_counter() - since

    def close(self, timeout_seconds: float) -> bool:
        """Finish what was submitted, then stop; False if that takes longer than the timeout."""
        self._closing.set()
        self._entries.put(None)
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _work(self, num_threads: int) -> None:
        torch.set_num_threads(num_threads)  # OpenMP keeps this per calling thread
        while (entry := self._entries.get()) is not None:
            if entry.future.set_running_or_notify_cancel():
                self._run(entry)

    def _run(self, entry: _Entry[Any]) -> None:
        self._running_since = started = perf_counter()
        try:
            value = entry.compute()
        except BaseException as error:
            entry.future.set_exception(error)
        else:
            finished = perf_counter()
            entry.future.set_result(Computed(value, started - entry.submitted, finished - started))
        finally:
            self._running_since = None
