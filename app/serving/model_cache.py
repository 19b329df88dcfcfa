"""Loaded models. The least recently used ones are dropped if they take too many bytes."""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from core.process.held_bytes import held_bytes
from core.process.memory_budget import MemoryBudget, Reservation
from core.registry.registry import Version
from models.model import TrainedModel

WAIT_SECONDS = 2.0  # for memory, while a request waits
LOADERS = 4  # threads of their own: large bodies do not wait for models

P = ParamSpec("P")
T = TypeVar("T")

Load = Callable[[Version], TrainedModel]


@dataclass(frozen=True)
class LoadedModel:
    """A version and its model in memory, and the bytes that are reserved for both."""

    version: Version
    model: TrainedModel
    reserved: Reservation

    @property
    def num_bytes(self) -> int:
        """Memory that both take."""
        return self.reserved.num_bytes


class ModelCache:
    """For use on the event loop. A thread loads a model once for all requests that wait for it.

    Args:
        size: the bytes that a version and its model take; called in the thread that loads.
        memory: where they are reserved.
        expected: the bytes to reserve before a version is loaded; called in a thread.
    """

    def __init__(
        self,
        load: Load,
        max_bytes: int,
        size: Callable[[object], int] = held_bytes,
        memory: MemoryBudget | None = None,
        expected: Callable[[Version], int] = lambda _: 0,
    ) -> None:
        self._load = load
        self._memory = memory or MemoryBudget(sys.maxsize)
        self._max_bytes = min(max_bytes, self._memory.lasting)
        self._size = size
        self._expected = expected
        self._threads = CapacityLimiter(LOADERS)
        self._loaded: OrderedDict[str, LoadedModel] = OrderedDict()
        self._loading: dict[str, asyncio.Task[LoadedModel]] = {}

    async def get(self, version: Version) -> TrainedModel:
        """The model of `version`, loaded if necessary.

        Loading continues if this request is cancelled, because others may wait for it.

        Raises:
            NotFound, CorruptArtifact: loading failed; the next call tries again.
            Unavailable: too much memory is reserved by others.
        """
        key = version.artifact_key  # unlike name and number, it is never used twice
        if key in self._loaded:
            self._loaded.move_to_end(key)
            return self._loaded[key].model
        if key not in self._loading:
            task = self._loading[key] = asyncio.create_task(self._read(version))
            task.add_done_callback(lambda done: self._finish(key, done))
        return (await asyncio.shield(self._loading[key])).model

    @property
    def num_bytes(self) -> int:
        """Memory that the loaded models take."""
        return sum(loaded.num_bytes for loaded in self._loaded.values())

    def loaded(self) -> tuple[LoadedModel, ...]:
        """The loaded models, the least recently used first. Any thread may call this."""
        return tuple(self._loaded.values())

    def artifacts(self) -> Collection[str]:
        """The artifacts of the loaded models."""
        return [*self._loaded]

    def forget(self, artifact_keys: Collection[str]) -> None:
        """Drop the models of these artifacts."""
        for key in artifact_keys:
            if key in self._loaded:
                self._loaded.pop(key).reserved.release()

    async def _read(self, version: Version) -> LoadedModel:
        expected = await self._apart(self._expected, version)
        while self._loaded and self.num_bytes + expected > self._max_bytes:
            self._drop_oldest()
        reserve = self._memory.reserve
        reserved = await self._apart(reserve, "models", expected, WAIT_SECONDS)
        try:
            return await self._apart(self._read_and_measure, version, reserved)
        except BaseException:
            reserved.release()
            raise

    async def _apart(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._threads)

    def _read_and_measure(self, version: Version, reserved: Reservation) -> LoadedModel:
        model = self._load(version)
        reserved.resize(self._size((version, model)))
        return LoadedModel(version, model, reserved)

    def _finish(self, key: str, task: asyncio.Task[LoadedModel]) -> None:
        del self._loading[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._loaded[key] = task.result()
        while self.num_bytes > self._max_bytes and len(self._loaded) > 1:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, oldest = self._loaded.popitem(last=False)
        oldest.reserved.release()
