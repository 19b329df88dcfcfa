"""`GET /jobs/{id}/events` as server-sent events: real servers, real clients, a real database."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from httpx_sse import ServerSentEvent, connect_sse

from app.http import event_streams
from core.access.keys import Keys, Scope
from core.jobs.jobs import Claim, Jobs, JobStatus, TrainSpec
from core.process.shared_bound import SharedBound
from models.config import ModelConfig
from tests.app.running import Service, answered, serving
from tests.core.postgresql import running_postgresql
from tests.waiting import PATIENCE, wait_until

STREAM = {"Accept": "text/event-stream"}
PROGRESS = {"epoch": 1, "epochs": 2, "fraction": 0.5, "eta_seconds": None}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server without a worker: what happens to a job is up to the test."""
    with serving(tmp_path_factory.mktemp("streams")) as running:
        yield running


@pytest.fixture
def jobs(service: Service) -> Jobs:
    return service.context.jobs


@pytest.fixture
def job(service: Service) -> str:
    return new_job(service)


def new_job(service: Service) -> str:
    columns = {"x": [1.0, 2.0, 3.0], "y": [1.0, 4.0, 9.0]}
    dataset, _ = service.context.datasets.add_columns("small", columns)
    spec = TrainSpec(model="square", dataset=dataset.id, config=ModelConfig(target="y"))
    return service.context.jobs.create(spec).id


def claim(jobs: Jobs, job: str) -> Claim:
    claimed = jobs.claim(job, "test", lease_seconds=3600)
    assert claimed is not None
    return claimed


def listed(service: Service, job: str) -> list[Any]:
    found: list[Any] = service.http.get(f"/jobs/{job}/events?limit=1000").json()["data"]
    return found


def streamed(service: Service, job: str, after: int | None = None) -> list[ServerSentEvent]:
    """The stream to its end."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    with connect_sse(service.http, "GET", f"/jobs/{job}/events", headers=headers) as source:
        return list(source.iter_sse())


def in_background(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_stream_tells_all_and_ends_with_the_job(service: Service, jobs: Jobs, job: str) -> None:
    held = claim(jobs, job)
    heard: list[ServerSentEvent] = []
    with connect_sse(service.http, "GET", f"/jobs/{job}/events") as source:
        headers = source.response.headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert headers["cache-control"] == "no-store"
        assert headers["x-accel-buffering"] == "no"
        for told in source.iter_sse():
            heard.append(told)
            if told.event == "state" and json.loads(told.data)["status"] == "running":
                jobs.report(held, progress=PROGRESS, metrics={"nelbo": 1.5})
                jobs.event(held, "log", {"message": "two\nlines"})
            if told.event == "log":
                jobs.finish(held, JobStatus.SUCCEEDED)
    assert [told.event for told in heard] == [
        "state", "state", "progress", "metrics", "log", "state",
    ]  # fmt: skip
    assert [told.id for told in heard] == ["1", "2", "3", "4", "5", "6"]
    assert [json.loads(told.data) for told in heard] == listed(service, job)


def test_who_comes_back_hears_all_once(service: Service, jobs: Jobs, job: str) -> None:
    """Cut after every event, past the size of a page."""
    held = claim(jobs, job)
    for number in range(2 * event_streams.PAGE_EVENTS):
        jobs.event(held, "log", {"message": str(number)})
    jobs.finish(held, JobStatus.FAILED, error={"code": "diverged", "message": "no"})
    ids = [event["id"] for event in listed(service, job)]
    assert ids == list(range(1, 2 * event_streams.PAGE_EVENTS + 4))
    for after in (None, 1, 99, 100, 101, 202):
        heard = [int(told.id) for told in streamed(service, job, after)]
        assert heard == ids[after or 0 :], after
    last = service.http.get(f"/jobs/{job}/events", headers=STREAM | {"Last-Event-ID": "203"})
    assert (last.status_code, last.content) == (204, b"")


def test_what_cannot_be_told_is_refused_before_it_begins(service: Service, job: str) -> None:
    for path, headers, status in (
        ("/jobs/job_none/events", {"Last-Event-ID": "3"}, 404),
        ("/jobs/JOB/events", {"Last-Event-ID": "99"}, 422),
        ("/jobs/JOB/events", {"Last-Event-ID": "-1"}, 422),
        ("/jobs/JOB/events", {"Last-Event-ID": "x"}, 422),
        ("/jobs/JOB/events", {"Last-Event-ID": str(2**31)}, 422),
        ("/jobs/JOB/events?limit=3", {}, 422),
        ("/jobs/JOB/events", {"Accept": "text/html"}, 406),
    ):
        answer = service.http.get(path.replace("JOB", job), headers=STREAM | headers)
        assert answer.status_code == status, (path, headers)
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_silent_stream_shows_that_it_lives(
    service: Service, jobs: Jobs, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a comment, of which clients make no event."""
    monkeypatch.setattr(event_streams, "KEEP_ALIVE_SECONDS", 0.1)
    headers = STREAM | {"Last-Event-ID": "1"}
    with service.http.stream("GET", f"/jobs/{job}/events", headers=headers) as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(2)] == [": ping", ": ping"]
    jobs.cancel(job)
    assert [told.id for told in streamed(service, job)] == ["1", "2"]


def test_who_does_not_read_holds_one_page(service: Service, jobs: Jobs, job: str) -> None:
    """The kernel's buffers and uvicorn's fill, then nothing more is read for this client."""
    held, streams = claim(jobs, job), service.services.event_streams
    for _ in range(300):
        jobs.event(held, "log", {"message": "x" * 50_000})
    address = httpx.URL(service.url)
    with socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect((address.host, address.port))
        request = f"GET /jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n"
        request += "Accept: text/event-stream\r\n\r\n"
        idle.sendall(request.encode())
        wait_until(lambda: streams._open.held == 1)
        in_background(lambda: jobs.finish(held, JobStatus.SUCCEEDED))
        assert [int(told.id) for told in streamed(service, job)] == list(range(1, 304))
        assert (streams._open.held, streams._polls) == (1, {})  # it waits for its client alone
    wait_until(lambda: streams._open.held == 0)


@pytest.mark.stack
def test_a_stream_waits_for_a_database_that_is_away(tmp_path: Path) -> None:
    with running_postgresql() as url, serving(tmp_path, database_url=url) as service:
        job, jobs = new_job(service), service.context.jobs
        heard: list[int] = []

        def listen() -> None:
            heard.extend(int(told.id) for told in streamed(service, job))

        listener = in_background(listen)
        wait_until(lambda: service.services.event_streams._open.held == 1)
        with away(url):
            refused = httpx.get(
                f"{service.url}/jobs/{job}/events", headers=STREAM, timeout=PATIENCE
            )
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0
            time.sleep(2 * event_streams.POLL_SECONDS)  # the stream meets it, too
            assert listener.is_alive()
        jobs.finish(claim(jobs, job), JobStatus.SUCCEEDED)
        listener.join(120)
        assert heard == [1, 2, 3]


@contextmanager
def away(url: str) -> Iterator[None]:
    """Nobody can connect to the server, and who was connected is not any more."""
    listening = Path(url.partition("?host=")[2]) / ".s.PGSQL.5432"
    hidden = listening.with_name("hidden")
    with psycopg.connect(url, autocommit=True) as connection:
        listening.rename(hidden)
        others = "FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
        yield
        hidden.rename(listening)


def test_a_key_that_is_revoked_hears_no_more(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        keys, job = Keys(service.context.database), new_job(service)
        key, text = keys.create("short", Scope.TRAIN)
        key_ring, bearer = service.app.state.key_ring, {"Authorization": f"Bearer {text}"}
        wait_until(lambda: key_ring._locked)
        with service.http.stream("GET", f"/jobs/{job}/events", headers=STREAM | bearer) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: state"
            keys.revoke(key.id)
            wait_until(lambda: not any(known.caller.key for known in key_ring._known.values()))
            service.context.jobs.cancel(job)
            assert not [line for line in lines if "cancelled" in line]


def test_streams_are_limited(service: Service, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service.services.event_streams, "_open", SharedBound(2))
    path = f"/jobs/{job}/events"
    with service.http.stream("GET", path, headers=STREAM) as first:
        lines = first.iter_lines()
        assert next(lines) == "event: state"
        second = answered(service.http.get(path, headers=STREAM), 503)
        assert int(second.headers["retry-after"]) > 0
    wait_until(lambda: service.services.event_streams._open.held == 0)
