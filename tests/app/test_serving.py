"""The parts of the serving path on their own: engine, admission, cache, resolver."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from app.serving.admission import Admission, Limits
from app.serving.engine import Engine
from app.serving.model_cache import ModelCache
from app.serving.resolver import Reference, Resolver
from core.exceptions import Invalid, NotFound, TooLarge, Unavailable
from core.registry import Version
from models.model import BayesianModel

pytestmark = pytest.mark.anyio

VERSION = Version(
    model="m",
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


@pytest.fixture
def engine() -> Any:
    engine = Engine(num_threads=1)
    yield engine
    engine.close(5)


def test_the_engine_runs_in_order_on_one_thread_and_tells_the_waiting_time(engine: Engine) -> None:
    ran: list[int] = []
    futures = [
        engine.submit(lambda i=i: (ran.append(i), time.sleep(0.02), threading.get_ident())[2])  # type: ignore[misc]
        for i in range(5)
    ]
    computed = [future.result(5) for future in futures]
    assert ran == [0, 1, 2, 3, 4]
    assert len({c.value for c in computed}) == 1
    assert all(c.compute_seconds >= 0.02 for c in computed)
    assert computed[4].queue_seconds >= 4 * 0.02 > computed[0].queue_seconds


def test_the_engine_sets_its_threads_and_outlives_errors(engine: Engine) -> None:
    assert engine.submit(torch.get_num_threads).result(5).value == 1
    with pytest.raises(ZeroDivisionError):
        engine.submit(lambda: 1 // 0).result(5)
    with pytest.raises(SystemExit):
        engine.submit(lambda: exec("raise SystemExit")).result(5)
    assert engine.submit(lambda: 3).result(5).value == 3


def test_what_is_cancelled_in_the_queue_never_runs(engine: Engine) -> None:
    begun, release, ran = threading.Event(), threading.Event(), []
    first = engine.submit(lambda: (begun.set(), release.wait(5)))
    second = engine.submit(lambda: ran.append(2))
    third = engine.submit(lambda: ran.append(3))
    assert begun.wait(5)
    assert second.cancel()
    assert engine.running_seconds() > 0
    release.set()
    third.result(5)
    assert ran == [3]
    assert not first.cancel()


def test_a_closed_engine_has_finished_its_queue_and_takes_no_more() -> None:
    engine = Engine(num_threads=1)
    future = engine.submit(lambda: time.sleep(0.05))
    assert engine.close(5)
    assert future.done()
    assert engine.running_seconds() == float("inf")
    with pytest.raises(RuntimeError):
        engine.submit(lambda: None)


def test_limits_name_themselves() -> None:
    limits = Limits(max_samples=100, max_work=1000)
    assert limits.check(10, 100) == 1000
    with pytest.raises(Invalid, match="CREDENCE_MAX_SAMPLES"):
        limits.check(1, 101)
    with pytest.raises(TooLarge, match=r"11 rows × 100 samples .*CREDENCE_MAX_WORK"):
        limits.check(11, 100)
    with pytest.raises(TooLarge, match="× 3 values each"):
        limits.check(5, 100, values_per_sample=3)


def test_too_much_queued_work_is_turned_away_with_the_time_to_wait() -> None:
    admission = Admission(max_queued_work=1000)
    admission.enter(900)
    with pytest.raises(Unavailable) as first:
        admission.enter(200)
    assert first.value.retry_after_seconds == 1, "nothing is known of the throughput yet"
    admission.observe(100, seconds=1.0)
    with pytest.raises(Unavailable) as second:
        admission.enter(200)
    assert second.value.retry_after_seconds == 9, "900 at 100 a second"
    admission.leave(900)
    admission.enter(1500)  # alone, anything that one request may be


def test_the_throughput_follows_the_last_seconds_of_computing() -> None:
    admission = Admission(max_queued_work=1000)
    for _ in range(100):
        admission.observe(1000, seconds=1.0)
    for _ in range(100):
        admission.observe(10, seconds=1.0)
    admission.enter(100)
    with pytest.raises(Unavailable) as refused:
        admission.enter(1000)
    assert refused.value.retry_after_seconds in (9, 10, 11)


def loader(seconds: float, loads: list[int]) -> Callable[[Version], BayesianModel]:
    def load(version: Version) -> BayesianModel:
        loads.append(version.version)
        time.sleep(seconds)
        return cast(BayesianModel, SimpleNamespace(num_bytes=100, version=version.version))

    return load


async def test_models_are_loaded_once_for_all_who_ask_at_once() -> None:
    loads: list[int] = []
    cache = ModelCache(loader(0.05, loads), max_bytes=1000)
    found = await asyncio.gather(*(cache.get(version(1)) for _ in range(20)))
    assert loads == [1]
    assert all(model is found[0] for model in found)
    assert await cache.get(version(1)) is found[0]


async def test_the_least_recently_used_model_makes_room() -> None:
    loads: list[int] = []
    cache = ModelCache(loader(0, loads), max_bytes=250)
    for number in (1, 2, 1, 3, 1, 2):  # 3 drops 2, which was used before 1
        await cache.get(version(number))
    assert loads == [1, 2, 3, 2]
    assert cache.num_bytes == 200


async def test_a_model_larger_than_the_cache_is_served_all_the_same() -> None:
    loads: list[int] = []
    cache = ModelCache(loader(0, loads), max_bytes=50)
    await cache.get(version(1))
    await cache.get(version(1))
    assert loads == [1]


async def test_a_failed_load_is_tried_again_and_a_cancelled_wait_harms_nobody() -> None:
    loads: list[int] = []

    def fail_once(version: Version) -> BayesianModel:
        if not loads:
            loads.append(0)
            raise NotFound("artifact", version.artifact_key)
        return loader(0.05, loads)(version)

    cache = ModelCache(fail_once, max_bytes=1000)
    with pytest.raises(NotFound):
        await cache.get(version(1))
    impatient = asyncio.create_task(cache.get(version(1)))
    patient = asyncio.create_task(cache.get(version(1)))
    await asyncio.sleep(0.01)
    impatient.cancel()
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

    def get(self, model: str, reference: Reference) -> Version:
        self.asked += 1
        self.hang.wait(10)
        if self.failure:
            raise self.failure
        return version(self.newest if reference is None else int(reference))


async def test_the_registry_is_asked_each_time_while_it_answers() -> None:
    registry = Registry()
    resolver = Resolver(registry.get)
    assert (await resolver.resolve("m", None)).version == 1
    registry.newest = 2
    assert (await resolver.resolve("m", None)).version == 2


async def test_the_last_answer_stands_in_while_the_database_is_away() -> None:
    registry = Registry()
    resolver = Resolver(registry.get)
    await resolver.resolve("m", None)
    registry.failure = Unavailable("away")
    assert (await resolver.resolve("m", None)).version == 1
    assert (await resolver.resolve("m", 1)).version == 1, "known by its alias, asked by number"
    with pytest.raises(Unavailable):
        await resolver.resolve("m", 7)
    registry.failure = NotFound("model", "m")
    with pytest.raises(NotFound):
        await resolver.resolve("m", 7)
    with pytest.raises(NotFound):
        await resolver.resolve("m", None)


async def test_a_database_that_hangs_delays_one_answer_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.serving.resolver.TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr("app.serving.resolver.PATIENCE_SECONDS", 0.0)
    registry = Registry()
    resolver = Resolver(registry.get)
    await resolver.resolve("m", None)
    registry.hang.clear()
    await resolver.resolve("m", None)
    started = time.perf_counter()
    for _ in range(50):
        assert (await resolver.resolve("m", None)).version == 1
    assert time.perf_counter() - started < 0.1
    registry.newest = 5
    registry.hang.set()
    for _ in range(100):
        await asyncio.sleep(0.01)
        if (await resolver.resolve("m", None)).version == 5:
            return
    pytest.fail("the resolver never noticed that the database is back")
