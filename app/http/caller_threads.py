"""Threads for long requests, such as uploads, by caller: nobody waits for the uploads of others.

Each caller has threads of its own as long as it has such requests. All share the number of requests
in progress, each of which has a file or a connection open (`SharedBound`).
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from core.exceptions import Unavailable
from core.process.shared_bound import SharedBound

RETRY_AFTER_SECONDS = 5  # about what a usual upload takes

P = ParamSpec("P")
T = TypeVar("T")


class CallerThreads:
    """Requests of one kind. For use on the event loop.

    Args:
        what: the name of such requests in messages, in the plural.
        threads: of each caller; its further requests wait for one.
        total: requests in progress; a caller alone may have half of them.
    """

    def __init__(self, what: str, threads: int, total: int) -> None:
        self._what, self._threads = what, threads
        self._bound = SharedBound(total)
        self._limiters: dict[Hashable, CapacityLimiter] = {}

    @property
    def held(self) -> int:
        """The number of requests in progress."""
        return self._bound.held

    @contextmanager
    def entered(self, caller: Hashable) -> Iterator[CapacityLimiter]:
        """Count a request while the block runs; its limiter for `anyio.to_thread`.

        Raises:
            Unavailable: all callers, or this one, have too many in progress.
        """
        bound = self._bound
        if not bound.has_room(caller):
            raise Unavailable(
                f"{bound.held} {self._what} are in progress here, {bound.of(caller)} of them "
                f"yours, and {bound.total} may be, which callers share: send this one again when "
                "one has ended",
                RETRY_AFTER_SECONDS,
            )
        bound.change(caller, 1)
        limiter = self._limiters.setdefault(caller, CapacityLimiter(self._threads))
        try:
            yield limiter
        finally:
            bound.change(caller, -1)
            if not bound.of(caller):
                del self._limiters[caller]

    async def run(
        self, caller: Hashable, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `work` in one of the caller's threads. Raises `Unavailable` as `entered` does."""
        with self.entered(caller) as threads:
            return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=threads)
