"""What is sent again, and what is not: against sockets, and against the service itself."""

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest

from credence import AsyncClient, Client, CredenceAPIError, ServiceUnreachable
from credence.client.retries import Retries, retry_after
from tests.credence.client.scripted import DROP, answer, scripted
from tests.credence.conftest import TINY
from tests.credence.running import Service

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
    first_key, second_key = server.header("idempotency-key")
    assert first_key == second_key
    assert len(first_key) == 36
    assert [body for _, body in server.requests] == [b'{"model":"m"}'] * 2


def test_two_calls_have_two_keys(ask: Ask) -> None:
    with scripted(answer(202, JOB)) as server:
        ask(server.url, "submit_train", [{}])
        ask(server.url, "submit_train", [{}])
    assert len(set(server.header("idempotency-key"))) == 2


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


def test_what_was_refused_before_any_work_comes_again(ask: Ask) -> None:
    with scripted(BUSY, answer(200, JOB)) as server:
        ask(server.url, "cancel", ["job_1"])
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422, 500])
def test_a_no_is_a_no(ask: Ask, status: int) -> None:
    with scripted(answer(status)) as server, pytest.raises(CredenceAPIError) as caught:
        ask(server.url, "submit_train", [{}])
    assert caught.value.status == status
    assert len(server.requests) == 1


def test_an_address_without_a_scheme_is_told_at_once(ask: Ask) -> None:
    with pytest.raises(ServiceUnreachable, match="write it as http://localhost:8123"):
        ask("localhost:8123", "job", ["job_1"])


def test_tries_have_an_end(ask: Ask) -> None:
    with scripted(BUSY) as server, pytest.raises(CredenceAPIError) as caught:
        ask(server.url, "job", ["job_1"])
    assert caught.value.status == 503
    assert len(server.requests) == 1 + QUICK.times


def test_nobody_waits_for_longer_than_was_said(ask: Ask) -> None:
    began = monotonic()
    with (
        scripted(answer(503, "{}", "Retry-After: 3600")) as server,
        pytest.raises(CredenceAPIError),
    ):
        ask(server.url, "job", ["job_1"])
    assert len(server.requests) == 1
    assert monotonic() - began < 3600


def test_the_service_says_how_long_to_wait(ask: Ask) -> None:
    began = monotonic()
    with scripted(answer(503, "{}", "Retry-After: 1"), answer(200, JOB)) as server:
        ask(server.url, "job", ["job_1"])
    assert monotonic() - began >= 1.0  # the pauses of `QUICK` are a few milliseconds


def test_retry_after_is_seconds_or_a_date() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=100)
    assert retry_after("7") == 7.0
    assert retry_after(format_datetime(soon, usegmt=True)) == pytest.approx(100, abs=30)
    assert retry_after(format_datetime(soon - timedelta(days=1), usegmt=True)) == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None


def test_pauses_grow_and_are_spread_out() -> None:
    retries = Retries(first_seconds=1.0, longest_seconds=8.0)
    for failures, ceiling in enumerate([1.0, 2.0, 4.0, 8.0, 8.0], start=1):
        pauses = [retries.pause(failures, None) for _ in range(200)]
        # of 200 uniform draws none is in the upper half with probability 2^-200
        assert ceiling / 2 < max(pauses) <= ceiling
        assert min(pauses) < ceiling / 2


@pytest.fixture
def losing(service: Service) -> Iterator[str]:
    """A proxy in front of the service that loses the first answer to each kind of POST."""
    lost: set[str] = set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept = ("content-type", "idempotency-key")
            headers = {n: v for n, v in self.headers.items() if n.lower() in kept}
            found = httpx.post(service.url + self.path, content=body, headers=headers, timeout=120)
            if (path := self.path.partition("?")[0]) not in lost:
                lost.add(path)
                self.close_connection = True
                return
            self.send_response(found.status_code)
            self.send_header("Content-Type", found.headers["Content-Type"])
            self.send_header("Content-Length", str(len(found.content)))
            self.send_header("X-Replayed", found.headers.get("Idempotency-Replayed", "false"))
            self.end_headers()
            self.wfile.write(found.content)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


NUMBERS = count()


def test_an_answer_that_got_lost_makes_nothing_twice(
    ask: Ask, losing: str, client: Client, tmp_path: Path
) -> None:
    number = next(NUMBERS)
    model = f"once{number}"
    path = tmp_path / f"{model}.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i % 7 + number}\n" for i in range(40)))
    dataset = ask(losing, "upload", [path])
    assert [d["id"] for d in client.datasets() if d["name"] == path.name] == [dataset["id"]]
    request = {"model": model, "dataset": dataset["id"], "target": "y", **TINY}
    job = ask(losing, "submit_train", [request])
    assert [found["id"] for found in client.jobs(model=model)] == [job["id"]]
    client.wait(job["id"])
