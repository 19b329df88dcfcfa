"""Frees what is in memory of models whose versions were deleted, here or by another replica."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from anyio import to_thread

from core.process.freed_memory import return_freed_memory
from core.process.periodic import Periodic

SECONDS = 5.0


class Holder(Protocol):
    """Keeps something of artifacts in memory. For use on the event loop."""

    def artifacts(self) -> Collection[str]:
        """The artifacts of which it keeps something."""

    def forget(self, artifacts: Collection[str]) -> None:
        """Drop what it keeps of these."""


@asynccontextmanager
async def forgetting_deleted_models(
    holders: Sequence[Holder], stored: Callable[[Sequence[str]], Collection[str]]
) -> AsyncIterator[None]:
    """Drop them every few seconds during the block.

    Every holder is asked what it keeps: a model that is no longer loaded may have left a card, and
    a prediction that runs during a deletion leaves something after it.

    Args:
        stored: of some artifacts those that belong to a version.
    """
    loop = asyncio.get_running_loop()

    async def kept() -> set[str]:
        return {key for holder in holders for key in holder.artifacts()}

    async def forget(keys: Collection[str]) -> None:
        for holder in holders:
            holder.forget(keys)

    def sweep() -> None:
        keys = asyncio.run_coroutine_threadsafe(kept(), loop).result()
        if deleted := keys - set(stored([*keys]) if keys else ()):
            asyncio.run_coroutine_threadsafe(forget(deleted), loop).result()
            return_freed_memory()

    thread = Periodic("freeing deleted models", SECONDS, sweep)
    thread.start()
    try:
        yield
    finally:
        await to_thread.run_sync(thread.stop)
