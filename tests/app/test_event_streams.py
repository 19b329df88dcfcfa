"""`GET /jobs/{id}/events` as server-sent events: real servers, real clients, a real database."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import psycopg
import pytest
from httpx_sse import ServerSentEvent, aconnect_sse, connect_sse
from sqlalchemy import event as engine_events

from app.http import event_streams
from core.access.keys import Keys, Scope
from core.jobs.jobs import Claim, Jobs, JobStatus, TrainSpec
from core.process.shared_bound import SharedBound
from models.config import ModelConfig
from tests.app.running import Service, serving
from tests.core.postgresql import running_postgresql
from tests.waiting import wait_until

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
    claimed = jobs.claim(job, "test", lease_seconds=60)
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


@contextmanager
def counted(service: Service) -> Iterator[list[str]]:
    """The statements that read events meanwhile."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM events" in statement:
            seen.append(statement)

    engine = service.context.database.engine
    engine_events.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        engine_events.remove(engine, "before_cursor_execute", note)


def test_a_stream_tells_what_was_then_what_comes_and_ends_with_the_job(
    service: Service, jobs: Jobs, job: str
) -> None:
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


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(
    service: Service, jobs: Jobs, job: str
) -> None:
    """Cut after every event, past the size of a page."""
    held = claim(jobs, job)
    for number in range(2 * event_streams.PAGE_EVENTS):
        jobs.event(held, "log", {"message": str(number)})
    jobs.finish(held, JobStatus.FAILED, error={"code": "diverged", "message": "no"})
    ids = [event["id"] for event in listed(service, job)]
    assert ids == list(range(1, 2 * event_streams.PAGE_EVENTS + 4))
    for after in (None, 0, 1, 2, 99, 100, 101, 102, 201, 202):
        heard = [int(told.id) for told in streamed(service, job, after)]
        assert heard == ids[after or 0 :], after
    last = service.http.get(f"/jobs/{job}/events", headers=STREAM | {"Last-Event-ID": "203"})
    assert (last.status_code, last.content) == (204, b"")


def test_a_resumed_jobs_stream_goes_on_past_its_old_end(
    service: Service, jobs: Jobs, job: str
) -> None:
    jobs.cancel(job)
    assert [told.id for told in streamed(service, job)] == ["1", "2"]
    jobs.resume(job)
    background = in_background(lambda: jobs.finish(claim(jobs, job), JobStatus.SUCCEEDED))
    for after in (0, 2):
        states = [json.loads(told.data)["status"] for told in streamed(service, job, after)]
        expected = ["queued", "cancelled", "queued", "running", "succeeded"]
        assert states == expected[after:]
    background.join()


@pytest.mark.parametrize(
    ("path", "headers", "status", "named"),
    [
        ("/jobs/job_none/events", {}, 404, "job_none"),
        ("/jobs/job_none/events", {"Last-Event-ID": "3"}, 404, "job_none"),
        (
            "/jobs/JOB/events",
            {"Last-Event-ID": "99"},
            422,
            "Last-Event-ID: 99 is not an event of job",
        ),
        ("/jobs/JOB/events", {"Last-Event-ID": "-1"}, 422, "Last-Event-ID"),
        ("/jobs/JOB/events", {"Last-Event-ID": "x"}, 422, "Last-Event-ID"),
        ("/jobs/JOB/events", {"Last-Event-ID": str(2**31)}, 422, "Last-Event-ID"),
        ("/jobs/JOB/events?limit=3", {}, 422, "a stream has no pages"),
        ("/jobs/JOB/events", {"Accept": "text/html"}, 406, "text/event-stream"),
    ],
)
def test_what_cannot_be_told_is_refused_before_it_begins(
    *, service: Service, job: str, path: str, headers: dict[str, str], status: int, named: str
) -> None:
    answer = service.http.get(path.replace("JOB", job), headers=STREAM | headers)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]


def test_accept_decides_and_openapi_tells_of_both(service: Service, job: str) -> None:
    path = f"/jobs/{job}/events"
    for accept in ("*/*", "application/json", "text/event-stream;q=0.5, application/json"):
        answer = service.http.get(path, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json", accept
    after = service.http.get(path, headers={"Last-Event-ID": "1"}).json()
    assert after == {"data": [], "next_cursor": None}
    document = service.http.get("/openapi.json").json()
    operation = document["paths"]["/jobs/{job_id}/events"]["get"]
    assert set(operation["responses"]["200"]["content"]) == {
        "application/json", "text/event-stream",
    }  # fmt: skip
    assert "Last-Event-ID" in {parameter["name"] for parameter in operation["parameters"]}


def test_a_silent_stream_shows_that_it_lives(
    service: Service, jobs: Jobs, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a comment, of which clients make no event."""
    monkeypatch.setattr(event_streams, "KEEP_ALIVE_SECONDS", 0.1)
    headers = STREAM | {"Last-Event-ID": "1"}
    with service.http.stream("GET", f"/jobs/{job}/events", headers=headers) as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(2)] == [": ping", ": ping"]
    cancelling = threading.Timer(1.0, jobs.cancel, [job])
    cancelling.start()
    assert [told.id for told in streamed(service, job)] == ["1", "2"]


def test_a_hundred_streams_ask_the_database_as_often_as_one(
    service: Service, jobs: Jobs, job: str
) -> None:
    held, heard = claim(jobs, job), [0] * 100

    async def listen(client: httpx.AsyncClient, index: int) -> None:
        async with aconnect_sse(client, "GET", f"/jobs/{job}/events") as source:
            async for told in source.aiter_sse():
                heard[index] = int(told.id)

    async def listen_all() -> None:
        limits = httpx.Limits(max_connections=None)
        client = httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits)
        async with client, anyio.create_task_group() as group:
            for index in range(100):
                group.start_soon(listen, client, index)

    listeners = in_background(lambda: anyio.run(listen_all))
    wait_until(lambda: set(heard) == {2})
    with counted(service) as reads:
        started = time.monotonic()
        for number in range(3, 7):
            jobs.event(held, "log", {"message": "news"})
            wait_until(lambda number=number: set(heard) == {number})
        ticks = (time.monotonic() - started) / event_streams.POLL_SECONDS
        # One poll per tick; four that found something begin anew at once. Each alone: 400 and more.
        assert len(reads) <= ticks + 2 * 4 + 2
    jobs.finish(held, JobStatus.SUCCEEDED)
    listeners.join(30)
    assert heard == [7] * 100


def test_who_went_away_holds_nothing(service: Service, jobs: Jobs, job: str) -> None:
    streams = service.services.event_streams
    with service.http.stream("GET", f"/jobs/{job}/events", headers=STREAM) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: state"
        assert streams._open.held == 1
    wait_until(lambda: streams._open.held == 0 and not streams._polls)
    with counted(service) as reads:
        time.sleep(2 * event_streams.POLL_SECONDS)
    assert reads == []
    assert jobs.get(job).status is JobStatus.QUEUED


def test_who_does_not_read_holds_one_page_and_nobody_up(
    service: Service, jobs: Jobs, job: str
) -> None:
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


def test_a_stream_waits_for_a_database_that_is_away(tmp_path: Path) -> None:
    with running_postgresql() as url, serving(tmp_path, database_url=url) as service:
        job, jobs = new_job(service), service.context.jobs
        heard: list[int] = []

        def listen() -> None:
            heard.extend(int(told.id) for told in streamed(service, job))

        listener = in_background(listen)
        wait_until(lambda: service.services.event_streams._open.held == 1)
        with away(url):
            refused = httpx.get(f"{service.url}/jobs/{job}/events", headers=STREAM, timeout=30)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0
            time.sleep(2 * event_streams.POLL_SECONDS)
            assert listener.is_alive()
        jobs.finish(claim(jobs, job), JobStatus.SUCCEEDED)
        listener.join(30)
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


def test_too_many_streams_are_refused(
    service: Service, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.services.event_streams, "_open", SharedBound(2))
    path = f"/jobs/{job}/events"
    with service.http.stream("GET", path, headers=STREAM) as first:
        lines = first.iter_lines()
        assert next(lines) == "event: state"
        second = service.http.get(path, headers=STREAM)
        assert second.status_code == 503
        assert int(second.headers["retry-after"]) > 0
    wait_until(lambda: service.services.event_streams._open.held == 0)
