"""Frees what is in memory of models whose versions were deleted, here or by another replica."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from anyio import to_thread

from app.serving.model_cache import ModelCache
from core.process.freed_memory import return_freed_memory
from core.process.periodic import Periodic

SECONDS = 5.0


@asynccontextmanager
async def forgetting_deleted_models(
    cache: ModelCache,
    stored: Callable[[Sequence[str]], Collection[str]],
    others: Sequence[Callable[[Collection[str]], None]],
) -> AsyncIterator[None]:
    """Drop them every few seconds during the block.

    Args:
        stored: of some artifacts those that belong to a version.
        others: forget what they know of these artifacts; called on the event loop.
    """
    loop = asyncio.get_running_loop()

    async def forget(keys: Collection[str]) -> None:
        for each in (cache.forget, *others):
            each(keys)

    def sweep() -> None:
        keys = [loaded.version.artifact_key for loaded in cache.loaded()]
        if deleted := set(keys) - set(stored(keys) if keys else ()):
            asyncio.run_coroutine_threadsafe(forget(deleted), loop).result()
            return_freed_memory()

    thread = Periodic("freeing deleted models", SECONDS, sweep)
    thread.start()
    try:
        yield
    finally:
        await to_thread.run_sync(thread.stop)
