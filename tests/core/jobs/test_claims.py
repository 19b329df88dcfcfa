"""Jobs are claimed, lost, taken back and resumed, and owners take turns."""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from core.access.callers import Caller, View
from core.clock import now
from core.database.database import Database
from core.database.schema import EventRow, JobRow, WorkerRow
from core.exceptions import Conflict, LostClaim
from core.jobs.backlog import read_backlog
from core.jobs.claims import Claims
from core.jobs.jobs import Claim, Job, Jobs, JobStatus, TrainSpec
from core.jobs.workers import Workers
from tests.core.conftest import LEASE, at_once, claimed

WRITES: list[Callable[[Jobs, Claim], object]] = [
    lambda jobs, claim: jobs.heartbeat(claim, LEASE),
    lambda jobs, claim: jobs.report(claim, {"epoch": 1}, {"nelbo": 2.0}),
    lambda jobs, claim: jobs.event(claim, "log", {"message": "still here"}),
    lambda jobs, claim: jobs.finish(claim, JobStatus.SUCCEEDED),
    lambda jobs, claim: jobs.finish(claim, JobStatus.FAILED, error={"code": "x", "message": "y"}),
    lambda jobs, claim: jobs.release(claim),
]


def test_a_stale_claim_writes_nothing(jobs: Jobs, job: Job) -> None:
    """A worker thought lost comes back while another has the job: refused, and no trace."""
    stale = claimed(jobs, job.id)
    jobs.reap(jobs.pulses(), max_attempts=3)
    claimed(jobs, job.id, "worker-2")
    before = jobs.get(job.id), jobs.events(job.id)
    for write in WRITES:
        with pytest.raises(LostClaim, match="attempt 1 of job"):
            write(jobs, stale)
    assert (jobs.get(job.id), jobs.events(job.id)) == before


def test_report_replaces_progress_and_merges_metrics(jobs: Jobs, job: Job) -> None:
    claim = claimed(jobs, job.id)
    assert jobs.report(claim, {"epoch": 1, "epochs": 2}, {"nelbo": 3.0, "kl": 1.0}) == "running"
    jobs.report(claim, {"epoch": 2, "epochs": 2}, {"nelbo": 2.5})
    running = jobs.get(job.id)
    assert running.progress == {"epoch": 2, "epochs": 2}
    assert running.metrics == {"nelbo": 2.5, "kl": 1.0}
    jobs.finish(claim, JobStatus.SUCCEEDED, metrics={"rmse": 1.0}, version=3)
    ended = jobs.get(job.id)
    assert (ended.status, ended.version) == ("succeeded", 3)
    assert ended.metrics == {"nelbo": 2.5, "kl": 1.0, "rmse": 1.0}
    assert ended.finished_at is not None
    assert ended.finished_at.utcoffset() == timedelta(0)


def test_numbers_that_are_not_finite_are_stored_as_null(jobs: Jobs, job: Job) -> None:
    """PostgreSQL refuses NaN in JSON, and so do the clients."""
    jobs.report(claimed(jobs, job.id), {"eta_seconds": float("inf")}, {"nelbo": float("nan")})
    assert jobs.get(job.id).progress == {"eta_seconds": None}
    assert jobs.get(job.id).metrics == {"nelbo": None}


def test_only_claims_that_are_not_renewed_are_reaped(jobs: Jobs, spec: TrainSpec) -> None:
    kept, lost = (jobs.create(spec) for _ in range(2))
    renewed = claimed(jobs, kept.id)
    claimed(jobs, lost.id, "worker-2")
    seen = jobs.pulses()
    jobs.heartbeat(renewed, LEASE)
    assert jobs.reap(seen, max_attempts=3) == [lost.id]
    assert jobs.get(lost.id).status == "queued"
    assert jobs.get(kept.id).status == "running"
    assert jobs.reap(seen, max_attempts=3) == []


def test_no_clock_on_a_wall_takes_a_job_away(jobs: Jobs, job: Job) -> None:
    """A lease whose end is long past, as a clock that jumped sees it, holds while it is renewed."""
    claim = jobs.claim(job.id, "worker-1", lease_seconds=-3600)
    assert claim is not None
    seen = jobs.pulses()
    assert jobs.heartbeat(claim, lease_seconds=-3600) is JobStatus.RUNNING
    assert jobs.reap(seen, max_attempts=3) == []


def test_no_clock_changes_the_queue(jobs: Jobs, spec: TrainSpec, database: Database) -> None:
    first = jobs.create(spec)
    with database.begin() as session:  # queued while the clock was an hour ahead
        session.execute(update(JobRow).values(queued_at=now() + timedelta(hours=1)))
    second = jobs.create(spec)
    jobs.release(claimed(jobs, first.id))
    assert jobs.queued_ids() == [second.id, first.id]


def test_a_job_that_kills_its_workers_fails_at_the_cap(jobs: Jobs, job: Job) -> None:
    for _ in range(2):
        claimed(jobs, job.id)
        jobs.reap(jobs.pulses(), max_attempts=3)
        assert jobs.get(job.id).status == "queued"
    claimed(jobs, job.id)
    jobs.reap(jobs.pulses(), max_attempts=3)
    failed = jobs.get(job.id)
    assert failed.error is not None
    assert (failed.status, failed.error["code"]) == ("failed", "worker_lost")
    assert jobs.resume(job.id).error is None, "lost workers are forgotten"
    claimed(jobs, job.id)
    jobs.reap(jobs.pulses(), max_attempts=2)
    assert jobs.get(job.id).status == "queued"


def test_workers_that_stop_do_not_count_as_lost(jobs: Jobs, job: Job) -> None:
    """Three restarts of the service must not make a long job fail."""
    for attempt in range(1, 4):
        claim = claimed(jobs, job.id)
        assert claim.attempt == attempt
        jobs.release(claim)
        queued = jobs.get(job.id)
        assert (queued.status, queued.started_at, queued.queue_position) == ("queued", None, 1)
    claimed(jobs, job.id)
    jobs.reap(jobs.pulses(), max_attempts=2)
    assert jobs.get(job.id).status == "queued"


def test_what_a_dead_worker_had_is_taken_back_at_once(jobs: Jobs, spec: TrainSpec) -> None:
    """Its lease has an hour to go, and only its own jobs move; it can write nothing more."""
    lost, unwanted, kept, queued = (jobs.create(spec) for _ in range(4))
    dead = claimed(jobs, lost.id, "dead")
    claimed(jobs, unwanted.id, "dead")
    jobs.cancel(unwanted.id)
    claimed(jobs, kept.id, "alive")
    assert set(jobs.take_back_from("dead", max_attempts=3)) >= {lost.id}
    statuses = [jobs.get(job.id).status for job in (lost, unwanted, kept, queued)]
    assert statuses == ["queued", "cancelled", "running", "queued"]
    with pytest.raises(LostClaim):
        jobs.report(dead, {"epoch": 1})
    claim = claimed(jobs, lost.id, "next")
    assert claim.attempt == 2
    assert jobs.take_back_from("dead", max_attempts=3) == []
    assert jobs.heartbeat(claim, LEASE) is JobStatus.RUNNING, "it is another's now"


def test_a_failed_job_is_resumed_from_where_it_was(jobs: Jobs, job: Job) -> None:
    with pytest.raises(Conflict, match="queued"):
        jobs.resume(job.id)
    claim = claimed(jobs, job.id)
    jobs.report(claim, {"epoch": 7})
    jobs.finish(claim, JobStatus.FAILED, error={"code": "diverged", "message": "NaN in the KL"})
    assert jobs.get(job.id).error == {"code": "diverged", "message": "NaN in the KL"}
    resumed = jobs.resume(job.id)
    assert (resumed.status, resumed.error, resumed.finished_at) == ("queued", None, None)
    assert resumed.progress == {"epoch": 7}
    assert claimed(jobs, job.id).attempt == 2


def test_writers_at_once_leave_no_gap(jobs: Jobs, job: Job, database: Database) -> None:
    """The worker's loop, its heartbeat and the service write to one job: ids stay 1, 2, 3, …"""
    claim = claimed(jobs, job.id)

    def write(number: int) -> None:
        for i in range(5):
            Jobs(database).event(claim, "log", {"message": f"{number}.{i}"})

    at_once(write, 4)
    events = jobs.events(job.id)
    assert [event.id for event in events] == list(range(1, 23))
    assert len({event.data.get("message") for event in events[2:]}) == 20


Submit = Callable[..., list[str]]


@pytest.fixture
def submit(database: Database, jobs: Jobs, spec: TrainSpec) -> Submit:
    """Queues so many trainings of an owner; returns their ids."""

    def create(owner: str, count: int = 1) -> list[str]:
        theirs = Jobs(database, Caller(View(owner), actor=owner))
        own = spec.model_copy(update={"model": f"model-{owner}"})
        return [theirs.create(own).id for _ in range(count)]

    return create


def next_ids(jobs: Claims, count: int, *, end: bool = True) -> list[str]:
    """Ids of the next jobs, each of which has ended before the next one is claimed, if `end`."""
    ids = []
    for _ in range(count):
        claim = jobs.claim_next("worker", LEASE)
        assert claim is not None
        ids.append(claim.job_id)
        if end:
            jobs.finish(claim, JobStatus.SUCCEEDED)
    return ids


def in_order(found: Sequence[Job]) -> list[str]:
    """Ids by their queue position."""
    places = {job.queue_position: job.id for job in found if job.queue_position is not None}
    assert sorted(places) == list(range(1, len(places) + 1))
    return [places[place] for place in sorted(places)]


def test_owners_take_turns_and_the_places_said_so(jobs: Jobs, submit: Submit) -> None:
    a, b, c = submit("ada", 5), submit("ben", 2), submit("cy", 3)
    promised = in_order(jobs.list(limit=100).data)
    assert promised == [a[0], b[0], c[0], a[1], b[1], c[1], a[2], c[2], a[3], a[4]]
    assert list(jobs.queued_ids()) == promised
    assert next_ids(jobs, 10) == promised


def test_whoever_comes_back_gets_no_missed_turns(jobs: Jobs, submit: Submit) -> None:
    first = submit("ada")
    assert next_ids(jobs, 1) == first
    b = submit("ben", 4)
    assert next_ids(jobs, 2) == b[:2]
    a = submit("ada", 3)
    assert next_ids(jobs, 5) == [a[0], b[2], a[1], b[3], a[2]]


def test_whoever_has_fewer_running_jobs_is_next(jobs: Jobs, submit: Submit) -> None:
    a = submit("ada", 5)
    assert next_ids(jobs, 3, end=False) == a[:3], "alone, an owner gets every worker"
    b = submit("ben", 4)
    promised = in_order(jobs.list(limit=100).data)
    assert promised == [b[0], b[1], b[2], a[3], b[3], a[4]]
    assert next_ids(jobs, 6, end=False) == promised
    assert jobs.claim_next("worker", LEASE) is None


def test_workers_woken_at_once_get_one_job_each(database: Database, submit: Submit) -> None:
    ids = [*submit("ada", 5), *submit("ben", 3)]
    claims = at_once(lambda i: Claims(database).claim_next(f"worker {i}", LEASE), 10)
    assert sorted(claim.job_id for claim in claims if claim is not None) == sorted(ids)


def test_whatever_runs_and_waits_the_next_is_the_first_in_order(jobs: Jobs, submit: Submit) -> None:
    """What each claim asks for alone is the first of the order that all places follow."""
    random_, running = random.Random(0), list[Claim]()
    for _ in range(40):
        if random_.random() < 0.5:
            submit(random_.choice(("ada", "ben", "cy", "")))
        if running and random_.random() < 0.4:
            jobs.finish(running.pop(random_.randrange(len(running))), JobStatus.SUCCEEDED)
        promised = list(jobs.queued_ids())
        claim = jobs.claim_next("worker", LEASE) if random_.random() < 0.7 else None
        if claim is not None:
            assert claim.job_id == promised[0]
            running.append(claim)


HOUR = timedelta(hours=1)


def age(database: Database, table: type[Any], by: timedelta, column: str, **where: Any) -> None:
    """Set a time of some rows back, as if the service had gone on for so long."""
    changed = update(table).filter_by(**where).values({column: now() - by})
    with database.begin() as session:
        session.execute(changed)


def test_the_queue_has_an_age(database: Database, jobs: Jobs, job: Job, spec: TrainSpec) -> None:
    second = jobs.create(spec)
    age(database, JobRow, HOUR, "queued_at", id=job.id)
    age(database, JobRow, 2 * HOUR, "queued_at", id=second.id)
    claimed(jobs, second.id)
    backlog = read_backlog(database)
    assert (backlog.queued, backlog.claimed, backlog.lease_ended) == (1, 1, 0)
    assert backlog.oldest_seconds == pytest.approx(3600, abs=600)
    assert backlog.jobs == {each.value: 0 for each in JobStatus} | {"queued": 1, "running": 1}


def test_a_lost_worker_is_seen_until_taken_back(database: Database, jobs: Jobs, job: Job) -> None:
    assert jobs.claim(job.id, "worker-1", lease_seconds=-1)
    assert read_backlog(database).lease_ended == 1
    jobs.reap(jobs.pulses(), max_attempts=3)
    backlog = read_backlog(database)
    assert (backlog.queued, backlog.claimed, backlog.lease_ended) == (1, 0, 0)


def test_silence_is_that_of_the_stalest_claimed_job_since_its_last_event(
    database: Database, jobs: Jobs, job: Job, spec: TrainSpec
) -> None:
    other = jobs.create(spec)
    stale, fresh = claimed(jobs, job.id), claimed(jobs, other.id)
    age(database, EventRow, HOUR, "time", job_id=job.id)
    age(database, EventRow, 2 * HOUR, "time", job_id=other.id)
    jobs.report(fresh, progress={"epoch": 1})
    assert read_backlog(database).silent_seconds == pytest.approx(3600, abs=600)
    jobs.finish(stale, JobStatus.FAILED)
    assert read_backlog(database).silent_seconds < 600


def test_workers_live_are_missed_and_forgotten(database: Database) -> None:
    workers, started = Workers(database), now()
    for worker, device in (("a", "cpu"), ("b", "cuda"), ("c", "cuda"), ("d", "cuda")):
        workers.beat(worker, device, started)
    age(database, WorkerRow, timedelta(minutes=5), "heartbeat_at", id="b")
    age(database, WorkerRow, HOUR, "heartbeat_at", id="d")
    backlog = read_backlog(database)
    assert backlog.live_workers == {"cpu": 1, "cuda": 1}
    assert backlog.known_workers == {"cpu": 1, "cuda": 2}
    workers.leave("c")
    assert read_backlog(database).live_workers == {"cpu": 1, "cuda": 0}
    assert read_backlog(database).known_workers == {"cpu": 1, "cuda": 1}
