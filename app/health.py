"""The state of the prediction engine and of the services that the process needs."""

import asyncio
import math
from collections.abc import Callable

from app.metrics.bounded_query import DATABASE_SECONDS, BoundedQuery
from app.serving.engine import Engine
from core.exceptions import Unavailable

BUSY_SECONDS = 2.0
STUCK_SECONDS = 120.0  # a computation that takes longer delays all requests, whatever the reason


class Health:
    """The engine, which every prediction needs, and the services that some requests need.

    Args:
        checks: by name of the service; a check raises `Unavailable` if the service does not work.
    """

    def __init__(self, engine: Engine, checks: dict[str, Callable[[], None]]) -> None:
        self._engine = engine
        self._checks = {name: BoundedQuery(check) for name, check in checks.items()}

    async def services(self) -> dict[str, str]:
        """`ok` or the error, by name of the service."""
        states = await asyncio.gather(*map(_state, self._checks.values()))
        return dict(zip(self._checks, states, strict=True))

    def engine(self) -> str:
        """`ok`; `busy` or `stuck` if a computation takes long; `dead` if the thread has ended."""
        seconds = self._engine.stalled_seconds()
        if math.isinf(seconds):
            return "dead"
        if seconds >= STUCK_SECONDS:
            return "stuck"
        return "busy" if seconds >= BUSY_SECONDS else "ok"


async def _state(check: BoundedQuery[None]) -> str:
    running = asyncio.shield(asyncio.wrap_future(check.start()))  # continues after the timeout
    try:
        await asyncio.wait_for(running, DATABASE_SECONDS)
    except TimeoutError:
        return f"no answer within {DATABASE_SECONDS:g} s"
    except Unavailable as error:
        return str(error)
    return "ok"
