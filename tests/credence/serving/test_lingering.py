"""Connections that stay: refused uploads, streams over a stop, and what a start loads."""

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from httpx_sse import connect_sse

from credence.client import Client
from credence.serving.listener import SILENT_PEER_SECONDS, listen
from tests.credence.running import begin_upload, serving
from tests.credence.serving.test_serve import start_long_job
from tests.waiting import PATIENCE

BODY = bytes(4 * 2**20)  # more than the kernel's buffers take: who sends it waits for a reader


def small_buffer(connection: http.client.HTTPConnection) -> None:
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)


def test_a_refused_body_may_be_sent_to_its_end(tmp_path: Path) -> None:
    """Closed at once, the connection would be reset below the client's hands."""
    with serving(tmp_path, "api", CREDENCE_MAX_BODY_BYTES="1024") as service:
        address = httpx.URL(service.url)
        connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
        connection.connect()
        small_buffer(connection)
        connection.request("POST", "/predict", BODY, {"Connection": "close"})
        answer = connection.getresponse()
        assert answer.status == 413
        assert b"CREDENCE_MAX_BODY_BYTES" in answer.read()
        connection.close()


def test_an_upload_in_full_flow_hears_that_the_service_stops(tmp_path: Path) -> None:
    with serving(tmp_path, "api") as service:
        connection = begin_upload(service.url, "slow", 10 * len(BODY))
        small_buffer(connection)
        connection.send(BODY[:1000])
        service.process.send_signal(signal.SIGTERM)
        select.select([connection.sock], [], [], 120)  # the answer is there, and unread
        connection.send(BODY)
        answer = connection.getresponse()
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert b"the service stops" in answer.read()
        connection.close()
        assert service.process.wait(PATIENCE) == 0


def test_streams_do_not_hold_up_a_stop_and_go_on_after(tmp_path: Path, table: Path) -> None:
    """With a client that listens, and one that asked and never read a byte."""
    heard: list[tuple[int, str]] = []

    def listen_to(url: str, job: str, stop_at: int = 0) -> None:
        """Hear all that one connection brings after what was heard; stop the service at an id."""
        since = {"Last-Event-ID": str(heard[-1][0] if heard else 0)}
        http = httpx.Client(base_url=url, timeout=120)
        with http, connect_sse(http, "GET", f"/jobs/{job}/events", headers=since) as source:
            for told in source.iter_sse():  # ends as a stream should, not cut
                heard.append((int(told.id), told.data))
                if len(heard) == stop_at:
                    service.process.terminate()

    with serving(tmp_path) as service:
        with Client(service.url) as client:
            job = start_long_job(client, table)
        address = httpx.URL(service.url)
        with socket.create_connection((address.host, address.port)) as idle:
            request = f"GET /jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n"
            idle.sendall(f"{request}Accept: text/event-stream\r\n\r\n".encode())
            listen_to(service.url, job, stop_at=5)
            assert service.process.wait(PATIENCE) == 0
        assert "Cancel" not in service.log_file.read_text()  # no stream was killed
    with serving(tmp_path, "api") as service, Client(service.url) as client:
        client.cancel(job)
        listen_to(service.url, job)
        url = f"{service.url}/jobs/{job}/events?limit=1000"
        listed = httpx.get(url, timeout=120).json()["data"]
    assert [number for number, _ in heard] == list(range(1, len(listed) + 1))
    assert [json.loads(data) for _, data in heard] == listed
    statuses = [event["status"] for event in listed if event["type"] == "state"]
    assert statuses == ["queued", "running", "queued", "cancelled"]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="TCP_USER_TIMEOUT is Linux's")
def test_connections_inherit_that_silent_peers_are_let_go_of() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            timeout = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert timeout == 1000 * SILENT_PEER_SECONDS
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


PRINT_LOADED = "import sys, {}; print(*sys.modules)"
LATER = {"boto3", "pandas", "sklearn", "scipy", "statsforecast", "numba", "torch._dynamo"}
HEAVY = {"torch", "fastapi", "uvicorn", "pyarrow", "celery", "alembic"}
EARLY = (
    "app.access.bind_address, core.settings, credence.cli, credence.serving.listener, "
    "credence.serving.worker_process"
)


def loaded(modules: str) -> set[str]:
    """What a new process has loaded once it has imported these."""
    command = [sys.executable, "-c", PRINT_LOADED.format(modules)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("process", ["credence.serving.supervisor", "worker.main"])
def test_libraries_that_few_requests_need_are_loaded_later(process: str) -> None:
    assert not loaded(process) & LATER


def test_the_worker_is_started_before_the_api_loads_its_libraries() -> None:
    assert not loaded(EARLY) & HEAVY
