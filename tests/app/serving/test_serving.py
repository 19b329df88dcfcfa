"""The parts of the serving path on their own: estimate, admission, cache, lookup."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from app.serving import versions
from app.serving.admission import Admission
from app.serving.batching import Entry
from app.serving.engine import Engine
from app.serving.model_cache import ModelCache
from app.serving.throughput import Throughput
from app.serving.versions import Reference, VersionLookup
from core.access.callers import View
from core.exceptions import NotFound, Unavailable
from core.registry.registry import Version
from models.prediction.options import ResolvedOptions
from models.tabular.model import TabularModel
from tests.app.serving.test_batching import Model
from tests.waiting import wait_until

pytestmark = pytest.mark.anyio

VERSION = Version(
    model="m",
    owner="",
    version=1,
    aliases=(),
    description={},
    dataset="ds_1",
    job="job_1",
    created_at=datetime.now(UTC),
    artifact_key="models/m/1",
)


def version(number: int) -> Version:
    return replace(VERSION, version=number, artifact_key=f"models/m/{number}")


async def test_an_estimate_that_refuses_everybody_does_not_last() -> None:
    """Nothing is measured while all are refused, so a wrong estimate must wear off by itself."""
    throughput = Throughput()

    def entry() -> Entry:
        chosen = {"seed": 1, "sampler": "monte_carlo", "samples": 10, "top": 1, "horizon": 1}
        options, deadline = ResolvedOptions(**chosen), time.perf_counter() + 100.0
        return Entry("a", Model(), torch.tensor([[1.0]]), options, deadline)

    throughput.observe(entry().speed_key, 1, 10, 1000.0)
    engine = Engine(1, throughput)
    try:
        for _ in range(200):
            with suppress(TimeoutError):
                assert (await engine.compute(entry())).prediction.mean == 11.0
                return
    finally:
        engine.close(120.0)
    pytest.fail("one slow computation in the past, and nobody is answered for ever")


def test_too_many_small_requests_are_turned_away_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.serving.admission.MAX_QUEUED_REQUESTS", 2)
    admission = Admission(1000, Throughput())
    enter = partial(admission.entered, "k", 1, 1, 1)
    with enter(), enter(), pytest.raises(Unavailable, match="requests"), enter():
        pass
    with enter():
        assert admission.queued_work == 1
        with enter(), admission.entered("k", 3, 1, 3, requests=0):
            assert (admission.queued_work, admission.queued_requests) == (5, 2)


def loader(loads: list[int]) -> Callable[[Version], TabularModel]:
    def load(version: Version) -> TabularModel:
        loads.append(version.version)
        return cast(TabularModel, SimpleNamespace(num_bytes=100, version=version.version))

    return load


async def test_the_least_recently_used_model_makes_room() -> None:
    loads: list[int] = []
    cache = ModelCache(loader(loads), 250, size=lambda _: 100)
    for number in (1, 2, 1, 3, 1, 2):  # 3 drops 2, which was used before 1
        await cache.get(version(number))
    assert loads == [1, 2, 3, 2]
    assert cache.num_bytes == 200


async def test_a_failed_load_is_tried_again_and_a_cancelled_wait_harms_nobody() -> None:
    loads: list[int] = []
    release = threading.Event()

    def fail_once(version: Version) -> TabularModel:
        if not loads:
            loads.append(0)
            raise NotFound("artifact", version.artifact_key)
        assert release.wait(120)
        return loader(loads)(version)

    cache = ModelCache(fail_once, 1000, size=lambda _: 100)
    with pytest.raises(NotFound):
        await cache.get(version(1))
    impatient = asyncio.create_task(cache.get(version(1)))
    patient = asyncio.create_task(cache.get(version(1)))
    await asyncio.sleep(0)  # both wait
    impatient.cancel()
    release.set()
    assert (await patient).num_bytes == 100
    assert loads == [0, 1]


class Registry:
    """A registry that can be made to fail or to hang."""

    def __init__(self) -> None:
        self.newest = 1
        self.failure: Exception | None = None
        self.hang = threading.Event()
        self.hang.set()
        self.asked = 0

    def get(self, view: View, model: str, reference: Reference) -> Version:
        self.asked += 1
        self.hang.wait(600)
        if self.failure:
            raise self.failure
        return version(self.newest if reference is None else int(reference))


class Clock:
    """The lookup's time, which stands still unless a test moves it."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(versions, "monotonic", clock)
    return clock


async def comes_true(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, condition)


async def newest(lookup: VersionLookup) -> int:
    return (await lookup.find(View(), "m", None)).version


async def test_an_answer_holds_for_a_moment_and_no_longer_than_the_next_news(clock: Clock) -> None:
    registry = Registry()
    lookup = VersionLookup(registry.get)
    assert [await newest(lookup) for _ in range(3)] == [1, 1, 1]
    assert registry.asked == 1
    registry.newest = 2
    lookup.clear()
    assert await newest(lookup) == 2
    registry.newest = 3
    clock.seconds += versions.STALE_SECONDS
    assert await newest(lookup) == 3


async def test_the_last_answer_stands_in_while_the_database_is_away() -> None:
    registry = Registry()
    lookup = VersionLookup(registry.get)
    await newest(lookup)
    registry.failure = Unavailable("away")
    lookup.clear()
    assert await newest(lookup) == 1
    assert (await lookup.find(View(), "m", 1)).version == 1, "known by its alias, asked by number"
    with pytest.raises(Unavailable):
        await lookup.find(View(), "m", 7)
    registry.failure = NotFound("model", "m")
    lookup.clear()
    for reference in (7, None):
        with pytest.raises(NotFound):
            await lookup.find(View(), "m", reference)


async def test_a_hanging_database_delays_one_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = Registry()
    lookup = VersionLookup(registry.get)
    await newest(lookup)
    registry.hang.clear()
    lookup.clear()
    monkeypatch.setattr(versions, "TIMEOUT_SECONDS", 0.1)
    assert await newest(lookup) == 1
    # Who waited for the database now would wait for ever.
    monkeypatch.setattr(versions, "TIMEOUT_SECONDS", 600.0)
    monkeypatch.setattr(versions, "RETRY_SECONDS", 0.0)
    assert [await newest(lookup) for _ in range(50)] == [1] * 50
    registry.newest = 5
    registry.hang.set()
    await comes_true(lambda: not lookup._lookups)
    await newest(lookup)
    await comes_true(lambda: not lookup._lookups)
    assert await newest(lookup) == 5
