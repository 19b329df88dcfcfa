"""Event streams of the real service: it stops, it comes back, its clients lose nothing."""

import json
import os
import socket
from pathlib import Path

import httpx
import pytest
from httpx_sse import connect_sse

from credence.client import Client
from credence.serving.listener import SILENT_PEER_SECONDS, listen
from tests.credence.running import serving
from tests.credence.serving.test_serve import start_long_job
from tests.waiting import PATIENCE


def test_streams_do_not_hold_up_sigterm_and_go_on_at_the_next_start(
    tmp_path: Path, table: Path
) -> None:
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
