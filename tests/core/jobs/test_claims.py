"""A worker's claim: given once, fenced by its attempt, taken back when the worker is lost."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import update

from core.clock import now
from core.database.database import Database
from core.database.schema import JobRow
from core.exceptions import LostClaim
from core.jobs.jobs import Claim, Job, Jobs, JobStatus
from core.jobs.specs import TrainSpec
from tests.core.jobs.claiming import LEASE, claimed

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


def test_the_queue_keeps_its_order_when_the_clock_is_set_back(
    jobs: Jobs, spec: TrainSpec, database: Database
) -> None:
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
