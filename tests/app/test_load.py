"""Many clients at once, clients that go away, requests that are too much."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psutil
import pytest

from tests.app.conftest import MakeService
from tests.app.running import Service, serving

ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]


def predict(service: Service, **body: Any) -> httpx.Response:
    return service.post("/predict", {"model": "price", "inputs": [ROW]} | body)


def block(service: Service) -> threading.Event:
    """Keep the engine busy until the event is set."""
    release = threading.Event()
    service.services.predictor.engine.submit(lambda: release.wait(20))
    return release


def raw_request(service: Service, body: bytes) -> socket.socket:
    """A request on a connection that the test can drop."""
    host, port = service.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(
        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    return connection


def wait_until(condition: Any, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_parallel_clients_get_their_own_answers(service: Service) -> None:
    """32 clients at once with parameters of their own: as if each had been alone."""

    def question(i: int) -> dict[str, Any]:
        row = [i / 10 - 1.5, *ROW[1:]]
        model = {"model": "price", "inputs": [row] * (1 + i % 3)}
        return model | {"samples": 1 + 7 * i, "seed": i, "prune": 0.5 * (i % 2)}

    def ask(i: int) -> dict[str, Any]:
        answer: dict[str, Any] = service.post("/predict", question(i)).json()
        return answer

    with ThreadPoolExecutor(32) as pool:
        together = list(pool.map(ask, range(32)))
    for i, answer in enumerate(together):
        alone = ask(i)
        assert (answer["samples"], answer["seed"]) == (1 + 7 * i, i)
        assert answer["prune"] == 0.5 * (i % 2)
        assert answer["mean"] == pytest.approx(alone["mean"], rel=1e-6)
        for kind, values in alone["variance"].items():
            assert answer["variance"][kind] == pytest.approx(values, rel=1e-5, abs=1e-12)


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
        assert staying.result(10).json()["samples"] == 77
    wait_until(
        lambda: service.metric("credence_predict_requests_total", model="price", status="499") == 3
    )
    assert service.metric("credence_predict_rows_total") == 2, "nobody computed for the others"


def test_too_much_work_is_refused_with_the_limit(make_service: MakeService) -> None:
    service = make_service(max_work=1000, max_samples=500, max_queued_work=1500)
    answer = predict(service, inputs=[ROW] * 11, samples=100)
    assert answer.status_code == 413
    assert "1000 (CREDENCE_MAX_WORK)" in answer.json()["detail"]
    assert predict(service, samples=501).status_code == 422
    assert predict(service, inputs=[ROW] * 10, samples=100).status_code == 200
    draws = {"model": "tree", "inputs": [[0.0, 0.0, [[0, 0], [0, 0]]]], "return_draws": True}
    assert service.post("/predict", draws | {"samples": 333}).status_code == 200
    assert service.post("/predict", draws | {"samples": 334}).status_code == 413


def test_a_full_queue_answers_503_and_when_to_come_back(make_service: MakeService) -> None:
    service = make_service(max_work=1000, max_queued_work=1500)
    predict(service)
    release = block(service)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(predict, service, inputs=[ROW] * 10, samples=100)
        wait_until(lambda: service.services.predictor.admission.queued_work == 1000)
        refused = predict(service, inputs=[ROW] * 10, samples=51)
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert "CREDENCE_MAX_QUEUED_WORK" in refused.json()["detail"]
        release.set()
        assert waiting.result(10).status_code == 200
    assert predict(service, inputs=[ROW] * 10, samples=51).status_code == 200


def test_other_routes_answer_while_the_engine_is_busy(make_service: MakeService) -> None:
    service = make_service()
    predict(service)
    release = block(service)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(predict, service, inputs=[ROW] * 20_000)
        for path in ("/health/live", "/models", "/jobs", "/metrics"):
            started = time.perf_counter()
            assert service.http.get(path).status_code == 200
            assert time.perf_counter() - started < 1
        release.set()
        assert len(waiting.result(20).json()["mean"]) == 20_000


def test_the_memory_of_a_large_request_is_bounded(make_service: MakeService) -> None:
    """10⁷ samples of rows: as float64 alone they would take 160 MB per head and summary."""
    service = make_service()
    predict(service, samples=10_000)
    process = psutil.Process()
    peak = before = process.memory_info().rss
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(predict, service, inputs=[ROW] * 1000, samples=10_000)
        while not answer.done():
            peak = max(peak, process.memory_info().rss)
            time.sleep(0.005)
        assert answer.result().status_code == 200
    assert (peak - before) / 2**20 < 800


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
    unknown = predict(service, model="tree")
    assert unknown.status_code == 503
    assert "retry-after" in unknown.headers
    listing = service.http.get("/models")
    assert (listing.status_code, listing.json()["detail"][:12]) == (503, "the database")
    ready = service.http.get("/health/ready")
    assert ready.status_code == 200
    assert "database" in ready.json()["database"]
    assert "credence_jobs{" not in service.http.get("/metrics").text

    database.rmdir()
    for file in context.settings.data_dir.glob("lost-*"):
        file.rename(file.with_name(file.name.removeprefix("lost-")))
    assert service.http.get("/models").status_code == 200


def test_a_stuck_engine_is_not_ready(make_service: MakeService, monkeypatch: Any) -> None:
    monkeypatch.setattr("app.health.PROBE_SECONDS", 0.1)
    service = make_service()
    assert service.http.get("/health/ready").json()["engine"] == "ok"
    release = block(service)
    assert service.http.get("/health/ready").json()["engine"] == "busy"
    monkeypatch.setattr("app.health.STUCK_SECONDS", 0.0)
    stuck = service.http.get("/health/ready")
    assert stuck.status_code == 503
    assert "retry-after" in stuck.headers
    release.set()
    assert service.http.get("/health/ready").status_code == 200


def test_requests_in_flight_are_answered_when_the_server_stops(make_service: MakeService) -> None:
    data_dir = make_service().context.settings.data_dir
    with ThreadPoolExecutor(1) as pool, httpx.Client(timeout=30) as client:
        with serving(data_dir) as stopping:
            predict(stopping)
            release = block(stopping)
            body = {"model": "price", "inputs": [ROW], "samples": 77}
            waiting = pool.submit(client.post, f"{stopping.url}/predict", json=body)
            wait_until(lambda: stopping.services.predictor.admission.queued_work == 77)
            threading.Timer(0.3, release.set).start()
        assert waiting.result(10).json()["samples"] == 77
