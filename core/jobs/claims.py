"""The worker's side of jobs: claim one, report on it, finish it or give it back."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from core.clock import database_now
from core.database.database import Database
from core.database.schema import JobRow, Json
from core.jobs import events, parts, turns
from core.jobs.events import EventType
from core.jobs.transitions import (
    CLAIMED,
    FINAL,
    Claim,
    JobStatus,
    change_claimed,
    complete,
    get_row,
    lock_claimed,
    record_status,
    requeue,
)

Pulse = tuple[int, datetime]  # attempt and lease end of a claimed job


class Claims:
    """The operations of a worker on jobs. Methods with a claim raise `LostClaim`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_next(self, worker: str, lease_seconds: float) -> Claim | None:
        """Claim the job whose turn it is (`core.jobs.turns`); None if no job waits."""
        while True:
            with self._database.read() as session:
                job_id = turns.next_id(session)
            if job_id is None:
                return None
            if claim := self.claim(job_id, worker, lease_seconds):
                return claim  # or else another worker was faster

    def claim(self, job_id: str, worker: str, lease_seconds: float) -> Claim | None:
        """Claim a queued job, or return None. If several workers try, one gets the claim."""
        claimable = (
            JobRow.id == job_id,
            JobRow.status == JobStatus.QUEUED,
            JobRow.kind.not_in(parts.PARENT_KINDS),
        )
        with self._job(job_id) as session:
            moment = database_now(session)
            statement = update(JobRow).where(*claimable)
            statement = statement.values(
                status=JobStatus.RUNNING,
                attempt=JobRow.attempt + 1,
                worker=worker,
                lease_until=moment + timedelta(seconds=lease_seconds),
                started_at=moment,
            )
            attempt = session.scalars(statement.returning(JobRow.attempt)).one_or_none()
            if attempt is None:
                return None
            record_status(session, job_id, JobStatus.RUNNING, attempt=attempt)
        return Claim(job_id, attempt, worker)

    def heartbeat(self, claim: Claim, lease_seconds: float) -> JobStatus:
        """Extend the lease. Returns `running`, or `cancelling` when the worker must stop."""
        with self._database.begin() as session:
            until = database_now(session) + timedelta(seconds=lease_seconds)
            return change_claimed(session, claim, lease_until=until)

    def report(
        self, claim: Claim, progress: Json | None = None, metrics: Json | None = None
    ) -> JobStatus:
        """Replace the progress, merge the metrics, write an event for each; returns the status."""
        with self._job(claim.job_id) as session:
            status = lock_claimed(session, claim)
            if progress is not None:
                change_claimed(session, claim, progress=progress)
                events.append(session, claim.job_id, "progress", progress)
            if metrics is not None:
                merged = get_row(session, claim.job_id).metrics | metrics
                change_claimed(session, claim, metrics=merged)
                events.append(session, claim.job_id, "metrics", metrics)
            return status

    def event(self, claim: Claim, type: EventType, data: Json) -> None:
        """Write an event that changes nothing else, such as a log line."""
        with self._database.begin() as session:
            lock_claimed(session, claim)
            events.append(session, claim.job_id, type, data)

    def finish(
        self,
        claim: Claim,
        status: JobStatus,
        *,
        error: Json | None = None,
        metrics: Json | None = None,
        version: int | None = None,
    ) -> JobStatus:
        """End the job. Returns its status: `cancelled` if it was cancelled before it succeeded."""
        if status not in FINAL:
            raise ValueError(f"{status!r} does not end a job: give one of {sorted(FINAL)}")
        with self._job(claim.job_id) as session:
            held = lock_claimed(session, claim)
            if held is JobStatus.CANCELLING and status is JobStatus.SUCCEEDED:
                complete(session, claim, JobStatus.CANCELLED)
                return JobStatus.CANCELLED
            complete(session, claim, status, error=error, metrics=metrics, version=version)
            return status

    def release(self, claim: Claim) -> None:
        """Requeue the job because its worker stops, or cancel it if that was requested."""
        with self._job(claim.job_id) as session:
            if lock_claimed(session, claim) is JobStatus.CANCELLING:
                complete(session, claim, JobStatus.CANCELLED)
            else:
                requeue(session, claim.job_id, CLAIMED, "the worker stopped")

    def pulses(self) -> dict[str, Pulse]:
        """The pulse of each claimed job, by id. It changes whenever the worker renews the lease.

        The worker is lost if the pulse does not change for the length of a lease, by the observer's
        monotonic clock.
        """
        query = select(JobRow.id, JobRow.attempt, JobRow.lease_until)
        with self._database.read() as session:
            rows = session.execute(query.where(JobRow.status.in_(CLAIMED))).all()
        return {row.id: (row.attempt, row.lease_until) for row in rows if row.lease_until}

    def reap(self, lost: Mapping[str, Pulse], max_attempts: int) -> list[str]:
        """Take back jobs of lost workers. Returns the ids of those whose pulse is still the same.

        They are queued again, or cancelled if that was requested. A job that has lost its worker
        `max_attempts` times since it was created or resumed fails with the code "worker_lost":
        otherwise a job that crashes its workers would be repeated for ever.
        """
        return [job_id for job_id, pulse in lost.items() if self._reap(job_id, pulse, max_attempts)]

    def take_back_from(self, worker: str, max_attempts: int) -> list[str]:
        """Take back what a worker had when its process ended. Returns the ids of these jobs.

        For the parent of the process alone: it knows the end, and need not wait for the lease.
        Otherwise as `reap`. A claim of another worker, or of a later attempt, is left as it is.
        """
        held = select(JobRow.id, JobRow.attempt)
        held = held.where(JobRow.worker == worker, JobRow.status.in_(CLAIMED))
        with self._database.read() as session:
            rows = session.execute(held).all()
        return [
            row.id
            for row in rows
            if self._lose(row.id, row.attempt, JobRow.worker == worker, max_attempts)
        ]

    def _reap(self, job_id: str, pulse: Pulse, max_attempts: int) -> bool:
        attempt, lease_until = pulse
        return self._lose(job_id, attempt, JobRow.lease_until == lease_until, max_attempts)

    def _lose(
        self, job_id: str, attempt: int, still: ColumnElement[bool], max_attempts: int
    ) -> bool:
        """Take back an attempt if its claim is still as it was; False if not."""
        lost = select(JobRow).where(
            JobRow.id == job_id, JobRow.status.in_(CLAIMED), JobRow.attempt == attempt, still
        )
        with self._job(job_id) as session:
            row = session.scalars(lost.with_for_update()).one_or_none()
            if row is None:
                return False  # renewed meanwhile, or taken back by another process
            _take_back(session, row, max_attempts)
            return True

    @contextmanager
    def _job(self, job_id: str) -> Iterator[Session]:
        """A transaction that changes a job, and at its end the parent job, if any."""
        with self._database.begin() as session, parts.updating_parent(session, job_id):
            yield session


def _take_back(session: Session, row: JobRow, max_attempts: int) -> None:
    """Cancel, fail or requeue a job whose worker was lost."""
    claim, losses = Claim(row.id, row.attempt, row.worker or ""), row.losses + 1
    if row.status == JobStatus.CANCELLING:
        complete(session, claim, JobStatus.CANCELLED)
    elif losses >= max_attempts:
        smaller = "fewer samples" if row.kind == "chunk" else "a smaller batch_size or network"
        message = (
            f"the job lost its worker {losses} times: it may need more memory than there is; "
            f"give {smaller}, or resume it"
        )
        complete(
            session, claim, JobStatus.FAILED, error={"code": "worker_lost", "message": message}
        )
    else:
        requeue(session, row.id, CLAIMED, "the worker was lost", losses=losses)
