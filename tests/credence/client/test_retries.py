"""What is sent again, and what is not, against sockets."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from credence import AsyncClient, Client, CredenceAPIError, ServiceUnreachable
from credence.client.retries import Retries, retry_after

DROP = ""  # the request is read, and the connection closed without an answer


@dataclass
class Scripted:
    """Where it listens, and the requests that have come: headers and body as they were."""

    url: str
    requests: list[tuple[str, bytes]] = field(default_factory=list)

    def header(self, name: str) -> list[str]:
        """A header of each request, empty where it is missing."""
        lines = [head.splitlines() for head, _ in self.requests]
        return [
            next((ln.partition(": ")[2] for ln in each if ln.lower().startswith(f"{name}:")), "")
            for each in lines
        ]


def answer(status: int, body: str = "{}", *headers: str) -> str:
    """A whole answer, after which the connection is closed."""
    head = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", "Connection: close"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", *headers, "", body])


@contextmanager
def scripted(*script: str) -> Iterator[Scripted]:
    """A server that plays the script; whoever comes after its end gets the last line."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=_play, args=(listener, server, script), daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def _play(listener: socket.socket, server: Scripted, script: Sequence[str]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            line = script[min(len(server.requests), len(script) - 1)]
            server.requests.append(_read(connection))
            connection.sendall(line.encode())


def _read(connection: socket.socket) -> tuple[str, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [h for h in head.decode().splitlines() if h.lower().startswith("content-length:")]
    wanted = int(lengths[0].partition(":")[2]) if lengths else 0
    while len(body) < wanted:
        body += connection.recv(65536)
    return head.decode(), body


QUICK = Retries(times=2, first_seconds=0.001)
JOB = json.dumps({"id": "job_1"})
BUSY = answer(503, "{}", "Retry-After: 0")

Ask = Callable[[str, str, list[Any]], Any]


def waiting(url: str, name: str, arguments: list[Any]) -> Any:
    with Client(url, retries=QUICK) as client:
        return getattr(client, name)(*arguments)


def awaiting(url: str, name: str, arguments: list[Any]) -> Any:
    async def ask() -> Any:
        async with AsyncClient(url, retries=QUICK) as client:
            return await getattr(client, name)(*arguments)

    return asyncio.run(ask())


@pytest.fixture(params=[waiting, awaiting])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


@pytest.mark.parametrize("first", [DROP, BUSY, answer(502), answer(429, "{}", "Retry-After: 0")])
def test_what_creates_is_sent_again_with_the_same_key(ask: Ask, first: str) -> None:
    with scripted(first, answer(202, JOB)) as server:
        assert ask(server.url, "submit_train", [{"model": "m"}]) == {"id": "job_1"}
        ask(server.url, "submit_train", [{"model": "m"}])
    first_key, second_key, other_call = server.header("idempotency-key")
    assert first_key == second_key != other_call
    assert len(first_key) == 36
    assert [body for _, body in server.requests] == [b'{"model":"m"}'] * 3


def test_a_file_is_sent_again_from_its_beginning(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "1,2\n" * 50_000)
    with scripted(BUSY, answer(201, '{"id": "ds_1"}')) as server:
        assert ask(server.url, "upload", [path])["id"] == "ds_1"
    assert [body for _, body in server.requests] == [path.read_bytes()] * 2


def test_what_may_have_been_done_is_not_done_again(ask: Ask) -> None:
    with scripted(DROP, answer(200, JOB)) as server, pytest.raises(ServiceUnreachable):
        ask(server.url, "cancel", ["job_1"])
    assert len(server.requests) == 1
    with scripted(BUSY, answer(200, JOB)) as server:  # refused before any work
        ask(server.url, "cancel", ["job_1"])
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422, 500])
def test_a_no_is_a_no(status: int) -> None:
    with scripted(answer(status)) as server, pytest.raises(CredenceAPIError) as caught:
        waiting(server.url, "submit_train", [{}])
    assert caught.value.status == status
    assert len(server.requests) == 1
    with pytest.raises(ServiceUnreachable, match="http://localhost:8123"):
        waiting("localhost:8123", "job", ["job_1"])  # an address without a scheme


def test_tries_have_an_end(ask: Ask) -> None:
    for reply, tries in ((BUSY, 1 + QUICK.times), (answer(503, "{}", "Retry-After: 3600"), 1)):
        with scripted(reply) as server, pytest.raises(CredenceAPIError) as caught:
            ask(server.url, "job", ["job_1"])
        assert caught.value.status == 503
        assert len(server.requests) == tries  # nobody waits for an hour


def test_the_service_says_how_long_to_wait() -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert retry_after("7") == 7.0
    assert retry_after(format_datetime(soon, usegmt=True)) == pytest.approx(3600, abs=300)
    assert retry_after(format_datetime(soon - timedelta(days=1), usegmt=True)) == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None
    assert QUICK.pause(1, 7.0) == 7.0  # and not a few milliseconds
