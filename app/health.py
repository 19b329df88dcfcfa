"""Whether the process can work, and the state of the services that it needs."""

import asyncio
import math
from collections.abc import Callable

from app.metrics.bounded_query import DATABASE_SECONDS, BoundedQuery
from app.serving.engine import Engine
from core.exceptions import Unavailable

BUSY_SECONDS = 2.0
STUCK_SECONDS = 120.0  # work that takes longer delays everybody, whatever the reason


class Health:
    """The engine, which every prediction needs, and the services that some requests need.

    Args:
        checks: by the service's name; each raises `Unavailable` if the service does not work.
    """

    def __init__(self, engine: Engine, checks: dict[str, Callable[[], None]]) -> None:
        self._engine = engine
        self._checks = {name: BoundedQuery(check) for name, check in checks.items()}

    async def services(self) -> dict[str, str]:
        """By name `ok`, or what is wrong."""
        states = await asyncio.gather(*map(_state, self._checks.values()))
        return dict(zip(self._checks, states, strict=True))

    def engine(self) -> str:
        """`ok`, `busy` with work that takes long, `stuck` if it takes too long, or `dead`."""
        seconds = self._engine.stalled_seconds()
        if math.isinf(seconds):
            return "dead"
        if seconds >= STUCK_SECONDS:
            return "stuck"
        return "busy" if seconds >= BUSY_SECONDS else "ok"


async def _state(check: BoundedQuery[None]) -> str:
    running = asyncio.shield(asyncio.wrap_future(check.start()))  # it runs on after the timeout
    try:
        await asyncio.wait_for(running, DATABASE_SECONDS)
    except TimeoutError:
        return f"no answer within {DATABASE_SECONDS:g} s"
    except Unavailable as error:
        return str(error)
    return "ok"
