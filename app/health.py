"""Whether the process can work, and the state of what it needs."""

import asyncio
import math
from collections.abc import Callable

from anyio import CapacityLimiter, to_thread

from app.serving.engine import Engine
from core.exceptions import Unavailable

PROBE_SECONDS = 2.0
BUSY_SECONDS = 2.0
STUCK_SECONDS = 120.0  # work that takes longer holds up everybody, whatever the reason


class Check:
    """Asks one service how it is. While an earlier question hangs, no second one is asked."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._asking: asyncio.Task[str] | None = None

    async def state(self) -> str:
        """`ok`, or what is wrong."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), PROBE_SECONDS)
        except TimeoutError:
            return f"no answer within {PROBE_SECONDS:g} s"

    async def _ask(self) -> str:
        own_thread = CapacityLimiter(1)  # not one of those that requests share
        try:
            await to_thread.run_sync(self._check, limiter=own_thread, abandon_on_cancel=True)
        except Unavailable as error:
            return str(error)
        return "ok"


class Health:
    """The engine, without which nothing is answered, and the services that some requests need."""

    def __init__(self, engine: Engine, checks: dict[str, Callable[[], None]]) -> None:
        self._engine = engine
        self._checks = {name: Check(check) for name, check in checks.items()}

    async def services(self) -> dict[str, str]:
        """The state of each service by name."""
        states = await asyncio.gather(*(check.state() for check in self._checks.values()))
        return dict(zip(self._checks, states, strict=True))

    def engine(self) -> str:
        """`ok`, `busy` with work that takes long, `stuck` if it takes too long, or `dead`."""
        seconds = self._engine.stalled_seconds()
        if math.isinf(seconds):
            return "dead"
        if seconds >= STUCK_SECONDS:
            return "stuck"
        return "busy" if seconds >= BUSY_SECONDS else "ok"
