"""Routes that are plain functions: a caller has a few threads, and who leaves is forgotten."""

import inspect
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.plain_routes import THREADS
from app.routers import docs
from tests.app.running import Service, serving
from tests.waiting import wait_until

MANY = 20
SHARED = 40  # threads that anyio has for plain functions


class Slow:
    """A route that takes as long as the test wants, and counts its calls."""

    def __init__(self) -> None:
        self.calls, self.is_full, self.may_end = 0, threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def answer(self) -> str:
        with self._lock:
            self.calls += 1
            if self.calls >= THREADS:
                self.is_full.set()
        assert self.may_end.wait(280)
        return "done"


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def service(tmp_path: Path, slow: Slow) -> Iterator[Service]:
    def extend(app: FastAPI) -> None:
        app.add_api_route("/slow", slow.answer, methods=["GET"])

    with serving(tmp_path / "data", extend) as service:
        yield service


def client(service: Service, address: str) -> httpx.Client:
    """A caller: without keys, an address is one."""
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=service.url, transport=transport, timeout=300)


def test_many_connections_leave_others_their_threads(service: Service, slow: Slow) -> None:
    with client(service, "127.0.0.2") as many, ThreadPoolExecutor(MANY) as pool:
        answers = [pool.submit(many.get, "/slow") for _ in range(MANY)]
        assert slow.is_full.wait(120)
        with client(service, "127.0.0.3") as other:
            for path in ("/models", "/datasets", "/jobs"):
                assert other.get(path).status_code == 200
        assert slow.calls == THREADS
        slow.may_end.set()
        assert {answer.result().status_code for answer in answers} == {200}
    assert slow.calls == MANY


def test_labels_need_no_threads_of_plain_routes(service: Service, slow: Slow) -> None:
    """Asynchronous routes took threads of the same 40, as many for a caller as it sent requests."""
    callers = -(-SHARED // THREADS)
    with ExitStack() as stack:
        addresses = [f"127.0.1.{i}" for i in range(1, callers + 1)]
        clients = [stack.enter_context(client(service, one)) for one in addresses]
        pool = stack.enter_context(ThreadPoolExecutor(callers * THREADS))
        answers = [pool.submit(one.get, "/slow") for one in clients for _ in range(THREADS)]
        wait_until(lambda: slow.calls == SHARED)
        feedback = {"model": "none", "inputs": [[1.0]], "truth": [1.0]}
        assert service.post("/feedback", feedback).status_code == 404
        path = "/models/none/expected?dataset=ds_0123456789abcdef01234567"
        assert service.http.get(path).status_code == 404
        slow.may_end.set()
        assert {answer.result().status_code for answer in answers} == {200}


def test_the_description_of_the_routes_is_made_once(service: Service) -> None:
    """On the event loop: 1.2 s of it for the first request, 14 ms for each later one."""
    answers = [service.http.get("/openapi.json") for _ in range(2)]
    assert answers[0].json()["openapi"].startswith("3.")
    assert answers[0].content == answers[1].content
    (route,) = (one for one in docs.router.routes if getattr(one, "path", "") == "/openapi.json")
    assert isinstance(route, APIRoute)
    assert not inspect.iscoroutinefunction(route.endpoint)


def test_what_was_left_before_its_turn_is_not_computed(service: Service, slow: Slow) -> None:
    threads = service.services.plain
    with client(service, "127.0.0.2") as staying, ThreadPoolExecutor(THREADS) as pool:
        answers = [pool.submit(staying.get, "/slow") for _ in range(THREADS)]
        assert slow.is_full.wait(120)
        leaving = [asked(service, "127.0.0.2") for _ in range(MANY)]
        wait_until(lambda: threads.held == THREADS + MANY)
        for connection in leaving:
            connection.close()
        wait_until(lambda: threads.held == THREADS)
        slow.may_end.set()
        assert {answer.result().status_code for answer in answers} == {200}
        assert staying.get("/models").status_code == 200
    assert slow.calls == THREADS


def asked(service: Service, address: str) -> socket.socket:
    """A connection over which a request was sent."""
    place = httpx.URL(service.url)
    connection = socket.create_connection(
        (place.host, place.port or 80), source_address=(address, 0)
    )
    connection.sendall(f"GET /slow HTTP/1.1\r\nHost: {place.netloc.decode()}\r\n\r\n".encode())
    return connection
