"""The text of all metrics: computed once for all who wait, and not all the time.

It takes tens of milliseconds, and anybody may ask for it. So one computation runs at a time, for
everybody who asked before it began: no page is older than its request. After each there is a pause
of `PAUSE` times its duration, so that at most a fifth of a processor is spent on them.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

from anyio import to_thread

PAUSE, MOST_PAUSE_SECONDS = 4.0, 1.0


class Scrapes:
    """For use on one event loop."""

    def __init__(self, compute: Callable[[], bytes]) -> None:
        """`compute` is called in a thread."""
        self._compute = compute
        self._next: asyncio.Task[bytes] | None = None  # has not begun to compute
        self._turn = asyncio.Lock()

    async def text(self) -> bytes:
        """The metrics as they are now, or later."""
        if self._next is None:
            self._next = asyncio.create_task(self._scrape())
        return await asyncio.shield(self._next)

    async def _scrape(self) -> bytes:
        await self._turn.acquire()
        self._next = None  # who asks from now on waits for the next one
        started = perf_counter()
        try:
            return await to_thread.run_sync(self._compute)
        finally:
            pause = min(PAUSE * (perf_counter() - started), MOST_PAUSE_SECONDS)
            asyncio.get_running_loop().call_later(pause, self._turn.release)
