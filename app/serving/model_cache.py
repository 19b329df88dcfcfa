"""Loaded models. The least recently used ones are dropped if they take too many bytes."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from core.registry.registry import Version
from models.model import TrainedModel

Load = Callable[[Version], TrainedModel]


@dataclass(frozen=True)
class LoadedModel:
    """A version and its model in memory."""

    version: Version
    model: TrainedModel


class ModelCache:
    """For use on the event loop. A thread loads a model once for all requests that wait for it."""

    def __init__(self, load: Load, max_bytes: int) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._loaded: OrderedDict[str, LoadedModel] = OrderedDict()
        self._loading: dict[str, asyncio.Task[TrainedModel]] = {}

    async def get(self, version: Version) -> TrainedModel:
        """The model of `version`, loaded if necessary.

        Loading continues if this request is cancelled, because others may wait for it.

        Raises:
            NotFound, CorruptArtifact: loading failed; the next call tries again.
        """
        key = version.artifact_key  # unlike name and number, it is never used twice
        if key in self._loaded:
            self._loaded.move_to_end(key)
            return self._loaded[key].model
        if key not in self._loading:
            task = self._loading[key] = asyncio.create_task(self._read(version))
            task.add_done_callback(lambda done: self._finish(version, done))
        return await asyncio.shield(self._loading[key])

    @property
    def num_bytes(self) -> int:
        """Memory that the loaded models take."""
        return sum(loaded.model.num_bytes for loaded in self._loaded.values())

    def loaded(self) -> tuple[LoadedModel, ...]:
        """The loaded models, the least recently used first. Any thread may call this."""
        return tuple(self._loaded.values())

    async def _read(self, version: Version) -> TrainedModel:
        return await asyncio.to_thread(self._load, version)

    def _finish(self, version: Version, task: asyncio.Task[TrainedModel]) -> None:
        key = version.artifact_key
        del self._loading[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._loaded[key] = LoadedModel(version, task.result())
        while self.num_bytes > self._max_bytes and len(self._loaded) > 1:
            self._loaded.popitem(last=False)
