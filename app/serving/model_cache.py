"""Loaded models, the least recently used ones dropped when they take too many bytes."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from core.registry import Version
from models.model import BayesianModel

Load = Callable[[Version], BayesianModel]


class ModelCache:
    """Belongs to the event loop; loading happens in a thread, once for all who wait for it."""

    def __init__(self, load: Load, max_bytes: int) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._loaded: OrderedDict[str, BayesianModel] = OrderedDict()
        self._loading: dict[str, asyncio.Task[BayesianModel]] = {}

    async def get(self, version: Version) -> BayesianModel:
        """The model of `version`, loaded if need be.

        A load outlives the request that began it, since others may wait for the same one.

        Raises:
            NotFound, CorruptArtifact: from loading; the next call tries again.
        """
        key = version.artifact_key  # unlike a name and a number, never used twice
        if key in self._loaded:
            self._loaded.move_to_end(key)
            return self._loaded[key]
        if key not in self._loading:
            task = self._loading[key] = asyncio.create_task(self._read(version))
            task.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(self._loading[key])

    @property
    def num_bytes(self) -> int:
        """Memory that the loaded models take."""
        return sum(model.num_bytes for model in self._loaded.values())

    async def _read(self, version: Version) -> BayesianModel:
        return await asyncio.to_thread(self._load, version)

    def _finish(self, key: str, task: asyncio.Task[BayesianModel]) -> None:
        del self._loading[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._loaded[key] = task.result()
        while self.num_bytes > self._max_bytes and len(self._loaded) > 1:
            self._loaded.popitem(last=False)
