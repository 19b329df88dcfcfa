"""Ten times too much: who is let in is answered, who is not is told, and nobody waits for one."""

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from app.serving import batching, turns
from app.serving.batching import Entry
from app.serving.engine import Engine
from app.serving.throughput import Throughput
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from tests.app.conftest import MakeService
from tests.app.running import Service
from tests.app.serving.test_batching import Model, assert_equal, at, truth
from tests.app.serving.test_load import ROW, block, predict
from tests.app.serving.wires import close
from tests.waiting import wait_until

OPTIONS = PredictOptions(samples=100, seed=1, sampler="monte_carlo", abstain_above=3.0)


class Known(Throughput):
    """A machine whose speed is known from the beginning."""

    def __init__(self, known: Throughput) -> None:
        super().__init__()
        self._means = known._means

    def observe(self, key: Hashable, rows: int, samples: int, seconds: float) -> None:
        """It takes as long as it is said to."""


class Slow(Model):
    """Notes how many rows it is asked for at a time, and waits before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def predict_rows(self, x: torch.Tensor, options: PredictOptions) -> RowPrediction:
        self.begun.set()
        assert self.go.wait(120)
        return super().predict_rows(x, options)


@pytest.mark.anyio
async def test_small_requests_go_between_slices_of_a_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A millisecond a row, so slices of 64: of a thousand rows the small ones wait for one each."""
    monkeypatch.setattr(turns, "RECENT_SECONDS", 600.0)  # however slow the machine
    model = Slow()
    engine = Engine(1, Known(at(1e-5)))
    rows = torch.arange(2000.0).reshape(1000, 2)
    large = Entry("a", model, rows, OPTIONS)
    answered: list[str] = []

    async def ask(name: str, entry: Entry) -> RowPrediction:
        computed = await engine.compute(entry)
        answered.append(name)
        assert isinstance(computed.prediction, RowPrediction)
        return computed.prediction

    try:
        waiting = asyncio.create_task(ask("large", large))
        await asyncio.to_thread(model.begun.wait, 120)
        small = [Entry("a", model, rows[:1], OPTIONS_OF[i]) for i in range(3)]
        others = [asyncio.create_task(ask(f"small {i}", one)) for i, one in enumerate(small)]
        await asyncio.sleep(0)  # all wait
        model.go.set()
        assert_equal(await waiting, truth(rows, OPTIONS))
        for i, other in enumerate(others):
            assert_equal(await other, truth(rows[:1], OPTIONS_OF[i]))
    finally:
        model.go.set()
        assert engine.close(120)
    assert answered == ["small 0", "small 1", "small 2", "large"]
    sizes = [size for size, _ in model.asked]
    assert sizes[0] == 64, "nobody else was there"
    assert max(sizes[1:]) == 16, "short slices while others come"
    assert sum(sizes) == 1003


OPTIONS_OF = [PredictOptions(samples=100, seed=2 + i, sampler="monte_carlo") for i in range(3)]


@pytest.mark.anyio
async def test_the_rest_of_a_request_that_nobody_waits_for_is_not_computed() -> None:
    model = Slow()
    engine = Engine(1, Known(at(1e-5)))
    entry = Entry("a", model, torch.zeros(1000, 2), OPTIONS)
    waiting = asyncio.create_task(engine.compute(entry))
    await asyncio.to_thread(model.begun.wait, 120)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    model.go.set()
    assert engine.close(120)
    assert model.asked == [(64, 100)]


def test_parts_are_joined_as_they_were_cut(service: Service) -> None:
    """Every field of an answer, numbers and classes, equal to one that was not cut."""
    questions: list[dict[str, Any]] = [
        {"model": "price", "inputs": [[i / 25 - 2, *ROW[1:]] for i in range(100)]},
        {"model": "tree", "inputs": [[i / 50, -1, [[i, 0], [0, 1]]] for i in range(100)]},
    ]
    for question in questions:
        question |= {"abstain_above": 0.5, "intervals": [0.5, 0.9], "samples": 30}
        whole = service.post("/predict", question).json()
        cut = _cut(service, lambda q=question: service.post("/predict", q).json())
        for answer in (whole, cut):
            answer.pop("timings_ms")
        assert cut == close(whole)


def _cut(service: Service, ask: Callable[[], Any]) -> Any:
    """The answer when at most 32 rows are computed at once."""
    before = service.metric("credence_predict_batch_requests_count")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "rows_of_slice", _at_most_32)
        answer = ask()
    assert service.metric("credence_predict_batch_requests_count") - before > 1, "it was cut"
    return answer


def _at_most_32(key: Hashable, rows: int, *_: Any, **__: Any) -> int | None:
    return 32 if rows > 32 else None


def test_of_ten_times_too_many_all_are_answered_or_refused(make_service: MakeService) -> None:
    """80 at once where next to nothing may wait; the refusals come while the engine is busy."""
    service = make_service(max_queued_seconds=1e-4)
    assert predict(service).status_code == 200
    release = block(service)
    admission = service.services.predictor.admission
    with ThreadPoolExecutor(80) as pool:
        asked = [pool.submit(predict, service, seed=i) for i in range(80)]
        wait_until(lambda: admission.queued_requests + sum(one.done() for one in asked) == 80)
        refused = [one.result() for one in asked if one.done()]
        release.set()
        answers = [one.result() for one in asked]
    assert refused
    assert all(one.status_code == 503 and int(one.headers["retry-after"]) >= 1 for one in refused)
    assert {one.status_code for one in answers} == {200, 503}
    seeds = {one.json()["seed"]: one.json()["mean"] for one in answers if one.status_code == 200}
    assert len(seeds) == 80 - len(refused)
    assert (admission.queued_work, admission.queued_requests) == (0, 0)
    for seed in list(seeds)[:3]:
        assert predict(service, seed=seed).json()["mean"] == pytest.approx(seeds[seed], rel=1e-4)


def test_a_body_that_trickles_is_given_up(make_service: MakeService) -> None:
    """A byte now and then, on the routes that keep a body in memory and in a file."""
    service = make_service(body_seconds=3)
    host, port = service.url.removeprefix("http://").split(":")
    before = {path.name for path in service.context.settings.data_dir.iterdir()}
    for path, kind in (("/predict", "application/json"), ("/datasets?name=a", "text/csv")):
        answer = asyncio.run(_trickle(host, int(port), path, kind))
        head, *_ = answer.partition(b"\r\n\r\n")
        if head:  # a byte that is sent to a closed connection may take the answer with it
            assert head.startswith(b"HTTP/1.1 408"), head
            assert b"connection: close" in head.lower()
    assert service.metric("credence_predict_requests_total", model="", status="408") == 1
    assert {path.name for path in service.context.settings.data_dir.iterdir()} == before


async def _trickle(host: str, port: int, path: str, kind: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: 9999\r\n\r\n"
    )
    writer.write(head.encode())

    async def drip() -> None:
        while True:
            writer.write(b" ")
            await asyncio.sleep(0.2)

    dripping = asyncio.create_task(drip())
    try:
        return await asyncio.wait_for(reader.read(), 120)
    except ConnectionResetError:
        return b""
    finally:
        dripping.cancel()
        writer.close()


@pytest.mark.timing
def test_a_body_that_comes_steadily_may_take_long(make_service: MakeService) -> None:
    """Four pauses that are together longer than the time for nothing; each chunk earns a second."""
    service = make_service(body_seconds=3)

    def steadily() -> Any:
        yield b"x,y\n"
        for _ in range(4):
            yield b"1,2\n" * 8192
            time.sleep(0.8)

    headers = {"Content-Type": "text/csv"}
    answer = service.http.post("/datasets?name=slow", content=steadily(), headers=headers)
    assert answer.status_code == 201, answer.text
