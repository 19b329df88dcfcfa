"""Many clients at once, clients that go away, requests that are too much."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import torch

from app.serving.batching import Entry
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from tests.app.conftest import MakeService
from tests.app.running import Service, answered
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
