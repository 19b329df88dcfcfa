"""Decodes large bodies and writes large answers in one thread, callers in turn.

Such work needs the interpreter's lock nearly all the time. Several threads would not be faster
together, and each of them would delay the event loop and the engine whenever these need the lock.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

INLINE_BYTES = 64 * 2**10  # less takes under a millisecond, so it needs no thread

P = ParamSpec("P")
T = TypeVar("T")


class LargeWork:
    """Work of one process. For use on its event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-work")
        self._is_busy = False
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # next caller first

    async def call(
        self,
        caller: Hashable,
        num_bytes: int,
        work: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The result of `work`, called here if `num_bytes` is small, else in the thread.

        Args:
            caller: whose turn it has to be.
        """
        if num_bytes <= INLINE_BYTES:
            return work(*args, **kwargs)
        await self._turn(caller)
        loop, called = asyncio.get_running_loop(), partial(copy_context().run, work)
        try:
            running = self._thread.submit(called, *args, **kwargs)
        except BaseException:
            self._next()
            raise

        def end(_: "Future[Any]") -> None:  # also of work that nobody waits for any more
            loop.call_soon_threadsafe(self._next)

        running.add_done_callback(end)
        return await asyncio.wrap_future(running)

    def close(self) -> None:
        """End the thread after the work in progress."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _turn(self, caller: Hashable) -> None:
        """Wait until nothing is in progress, and it is the caller's turn."""
        if not self._is_busy:
            self._is_busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it came at the same time
                self._next()
            raise

    def _next(self) -> None:
        """Give the turn to the caller who waits for longest, and put this one behind the others."""
        while self._waiting:
            caller = next(iter(self._waiting))
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False
