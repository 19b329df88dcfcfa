"""The numbers for metrics, beside states of the queue that were made as workers make them."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from core.clock import now
from core.database.database import Database
from core.database.schema import EventRow, JobRow, WorkerRow
from core.jobs.backlog import read_backlog
from core.jobs.jobs import Job, Jobs, JobStatus
from core.jobs.specs import TrainSpec
from core.jobs.workers import Workers
from tests.core.jobs.claiming import claimed

HOUR = timedelta(hours=1)


def age(database: Database, table: type[Any], by: timedelta, column: str, **where: Any) -> None:
    """Set a time of some rows back, as if the service had gone on for so long."""
    changed = update(table).filter_by(**where).values({column: now() - by})
    with database.begin() as session:
        session.execute(changed)


def test_the_queue_is_what_waits_and_as_old_as_its_first(
    database: Database, jobs: Jobs, job: Job, spec: TrainSpec
) -> None:
    second = jobs.create(spec)
    age(database, JobRow, HOUR, "queued_at", id=job.id)
    age(database, JobRow, 2 * HOUR, "queued_at", id=second.id)
    claimed(jobs, second.id)
    backlog = read_backlog(database)
    assert (backlog.queued, backlog.claimed, backlog.lease_ended) == (1, 1, 0)
    assert backlog.oldest_seconds == pytest.approx(3600, abs=600)
    assert backlog.jobs == {each.value: 0 for each in JobStatus} | {"queued": 1, "running": 1}


def test_a_job_whose_worker_is_lost_is_seen_until_it_is_taken_back(
    database: Database, jobs: Jobs, job: Job
) -> None:
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
