"""Many clients at once, clients that go away, requests and bodies that are too much."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import torch

from app.serving import batching, turns
from app.serving.batching import Entry
from app.serving.engine import Engine
from app.serving.throughput import Throughput
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from tests.app.conftest import MakeService
from tests.app.running import Service, answered
from tests.app.serving.test_batching import Model, assert_equal, at, truth
from tests.app.serving.wires import close
from tests.waiting import wait_until

ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]


def predict(service: Service, **body: Any) -> httpx.Response:
    return service.post("/predict", {"model": "price", "inputs": [ROW], "samples": 100} | body)


class Blocker:
    """A model that takes as long as it is told to, or takes the engine's thread with it."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.begun, self.release, self.failure = threading.Event(), threading.Event(), failure

    def predict_rows(self, x: torch.Tensor, options: PredictOptions) -> RowPrediction:
        self.begun.set()
        self.release.wait(600)
        raise self.failure or RuntimeError


def block(service: Service, failure: BaseException | None = None) -> threading.Event:
    """Keep the engine busy until the event is set; nobody waits for what it computes."""
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    blocker = Blocker(failure)
    entry = Entry("blocker", blocker, torch.zeros(1, 1), PredictOptions(samples=100), future=future)
    service.services.predictor.engine._submit(entry)
    assert blocker.begun.wait(120)
    return blocker.release


def raw_request(service: Service, body: bytes) -> socket.socket:
    """A request on a connection that the test can drop."""
    host, port = service.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    return connection


def test_a_client_that_goes_away_while_it_waits_is_dropped_alone(make_service: MakeService) -> None:
    service = make_service()
    predict(service)
    admission = service.services.predictor.admission
    release = block(service)
    body = b'{"model": "price", "inputs": [[1.0, "oak", true, null]], "samples": 5000}'
    gone = [raw_request(service, body) for _ in range(3)]
    with ThreadPoolExecutor(1) as pool:
        staying = pool.submit(predict, service, samples=77)
        wait_until(lambda: admission.queued_work == 3 * 5000 + 77)
        for connection in gone:
            connection.close()
        wait_until(lambda: admission.queued_work == 77)
        release.set()
        assert staying.result().json()["samples"] == 77
    wait_until(
        lambda: service.metric("credence_predict_requests_total", model="price", status="499") == 3
    )
    assert service.metric("credence_predict_rows_total") == 2, "nobody computed for the others"


def test_too_much_work_is_refused_with_the_limit(make_service: MakeService) -> None:
    service = make_service(max_work=1000, max_samples=500, max_queued_work=1500)
    answer = answered(predict(service, inputs=[ROW] * 11, samples=100), 413)
    assert "CREDENCE_MAX_WORK" in answer.json()["detail"]
    assert predict(service, samples=501).status_code == 422
    assert predict(service, inputs=[ROW] * 10, samples=100).status_code == 200
    draws = {"model": "tree", "inputs": [[0.0, 0.0, [[0, 0], [0, 0]]]], "return_draws": True}
    assert service.post("/predict", draws | {"samples": 333}).status_code == 200
    assert service.post("/predict", draws | {"samples": 334}).status_code == 413


def test_a_full_queue_answers_503_and_when_to_come_back(make_service: MakeService) -> None:
    """At once: while the engine is busy."""
    service = make_service(max_work=1000, max_queued_work=1500)
    predict(service)
    release = block(service)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(predict, service, inputs=[ROW] * 10, samples=100)
        wait_until(lambda: service.services.predictor.admission.queued_work == 1000)
        refused = answered(predict(service, inputs=[ROW] * 10, samples=51), 503)
        assert int(refused.headers["retry-after"]) >= 1
        assert "CREDENCE_MAX_QUEUED_WORK" in refused.json()["detail"]
        release.set()
        assert waiting.result().status_code == 200
    assert predict(service, inputs=[ROW] * 10, samples=51).status_code == 200


def test_predictions_survive_the_loss_of_the_database(make_service: MakeService) -> None:
    service = make_service()
    assert predict(service, version="champion").status_code == 200
    assert predict(service).status_code == 200
    context = service.context
    database = context.settings.data_dir / "credence.db"
    context.database.dispose()
    for file in context.settings.data_dir.glob("credence.db*"):
        file.rename(file.with_name(f"lost-{file.name}"))
    database.mkdir()
    for reference in ("champion", None, 1, 2):
        assert predict(service, version=reference).status_code == 200
    unknown = answered(predict(service, model="tree"), 503)
    assert "retry-after" in unknown.headers
    assert service.http.get("/models").status_code == 503
    ready = answered(service.http.get("/health/ready"))
    assert "database" in ready.json()["database"]
    assert "credence_jobs{" not in service.http.get("/metrics").text

    database.rmdir()
    for file in context.settings.data_dir.glob("lost-*"):
        file.rename(file.with_name(file.name.removeprefix("lost-")))
    assert service.http.get("/models").status_code == 200


def test_predictions_survive_the_loss_of_the_artifact_store(make_service: MakeService) -> None:
    service = make_service()
    assert predict(service).status_code == 200
    store = service.context.settings.artifact_root
    away = store.rename(store.with_name("away"))
    store.write_text("no folder any more")
    assert predict(service).status_code == 200
    ready = answered(service.http.get("/health/ready"))
    assert ready.json()["artifact_store"] != "ok"
    store.unlink()
    away.rename(store)
    assert service.http.get("/health/ready").json()["artifact_store"] == "ok"


def test_a_stuck_engine_is_not_ready(make_service: MakeService, monkeypatch: Any) -> None:
    monkeypatch.setattr("app.health.BUSY_SECONDS", 0.1)
    service = make_service()
    assert service.http.get("/health/ready").json()["engine"] == "ok"
    release = block(service)
    wait_until(lambda: service.http.get("/health/ready").json()["engine"] == "busy")
    monkeypatch.setattr("app.health.STUCK_SECONDS", 0.1)
    stuck = answered(service.http.get("/health/ready"), 503)
    assert "retry-after" in stuck.headers
    release.set()
    wait_until(lambda: service.http.get("/health/ready").status_code == 200)


def test_a_dead_engine_is_not_ready_and_refuses_at_once(make_service: MakeService) -> None:
    service = make_service()
    predict(service)
    release = block(service, SystemExit())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(predict, service)
        wait_until(lambda: service.services.predictor.admission.queued_work == 100)
        release.set()
        assert waiting.result().status_code == 503
    wait_until(lambda: service.http.get("/health/ready").status_code == 503)
    assert "dead" in service.http.get("/health/ready").json()["detail"]
    assert service.http.get("/health/live").status_code == 200
    refused = answered(predict(service), 503)
    assert int(refused.headers["retry-after"]) >= 1


def test_a_batch_is_as_if_alone(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 different rows, levels of their own, one seed: a few batches, and nobody can tell."""
    monkeypatch.setattr("app.serving.batching.BATCH_SECONDS", 600.0)  # however slow the machine
    service = make_service()
    questions = [
        {"inputs": [[i / 10 - 1.5, *ROW[1:]]], "intervals": [0.5 + i / 100]} for i in range(32)
    ]
    alone = [predict(service, **question).json() for question in questions]
    batches = service.metric("credence_predict_batch_requests_count")
    release = block(service)
    with ThreadPoolExecutor(32) as pool:
        waiting = [pool.submit(predict, service, **question) for question in questions]
        wait_until(lambda: service.services.predictor.admission.queued_work == 3200)
        release.set()
        together = [future.result().json() for future in waiting]
    for answer, expected in zip(together, alone, strict=True):
        for name in ("mean", "mc_error", "variance", "intervals"):
            assert answer[name] == close(expected[name])
    assert service.metric("credence_predict_batch_requests_count") - batches < 16
    assert service.metric("credence_predict_batch_work_sum") == 2 * 3200


def test_a_deadline_that_passes_in_the_queue_is_a_503_at_once(make_service: MakeService) -> None:
    """Before the engine is free."""
    service = make_service()
    predict(service)
    release = block(service)
    late = answered(predict(service, deadline_ms=100), 503)
    assert int(late.headers["retry-after"]) >= 1
    assert service.services.predictor.admission.queued_work == 0
    release.set()


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
