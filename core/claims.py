"""The worker's side of jobs: claim one, report on it, finish it or give it back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from core import events, parts
from core.database import Database
from core.events import EventType
from core.names import now
from core.schema import JobRow, Json
from core.transitions import (
    CLAIMED,
    FINAL,
    Claim,
    JobStatus,
    change,
    complete,
    get_row,
    hold,
    requeue,
    tell,
)


class Claims:
    """What may be done with a claim; everything but `claim` and `reap` can raise `LostClaim`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, job_id: str, worker: str, lease_seconds: float) -> Claim | None:
        """Take a queued job: of any number of workers that ask at once, one gets a claim."""
        moment = now()
        statement = (
            update(JobRow)
            .where(
                JobRow.id == job_id,
                JobRow.status == JobStatus.QUEUED,
                JobRow.kind.not_in(parts.WHOLES),
            )
            .values(
                status=JobStatus.RUNNING,
                attempt=JobRow.attempt + 1,
                worker=worker,
                lease_until=moment + timedelta(seconds=lease_seconds),
                started_at=moment,
            )
            .returning(JobRow.attempt)
        )
        with self._job(job_id) as session:
            attempt = session.scalars(statement).one_or_none()
            if attempt is None:
                return None
            tell(session, job_id, JobStatus.RUNNING, attempt=attempt)
        return Claim(job_id, attempt, worker)

    def heartbeat(self, claim: Claim, lease_seconds: float) -> JobStatus:
        """Extend the lease; the answer is `running`, or `cancelling` when the worker must stop."""
        with self._database.begin() as session:
            return change(session, claim, lease_until=now() + timedelta(seconds=lease_seconds))

    def report(
        self, claim: Claim, progress: Json | None = None, metrics: Json | None = None
    ) -> JobStatus:
        """Replace the progress, merge the metrics, write an event for each; answer as above."""
        with self._job(claim.job_id) as session:
            status = hold(session, claim)
            if progress is not None:
                change(session, claim, progress=progress)
                events.append(session, claim.job_id, "progress", progress)
            if metrics is not None:
                merged = get_row(session, claim.job_id).metrics | metrics
                change(session, claim, metrics=merged)
                events.append(session, claim.job_id, "metrics", metrics)
            return status

    def event(self, claim: Claim, type: EventType, data: Json) -> None:
        """Write an event that changes nothing, such as a line of the log."""
        with self._database.begin() as session:
            hold(session, claim)
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
        """End the job. One that was asked to cancel meanwhile is cancelled, not succeeded."""
        if status not in FINAL:
            raise ValueError(f"{status!r} does not end a job: give one of {sorted(FINAL)}")
        with self._job(claim.job_id) as session:
            held = hold(session, claim)
            if held is JobStatus.CANCELLING and status is JobStatus.SUCCEEDED:
                complete(session, claim, JobStatus.CANCELLED)
                return JobStatus.CANCELLED
            complete(session, claim, status, error=error, metrics=metrics, version=version)
            return status

    def release(self, claim: Claim) -> None:
        """Give the job back because the worker stops; one being cancelled is cancelled."""
        with self._job(claim.job_id) as session:
            if hold(session, claim) is JobStatus.CANCELLING:
                complete(session, claim, JobStatus.CANCELLED)
            else:
                requeue(session, claim.job_id, CLAIMED, "the worker stopped")

    def reap(self, now: datetime, max_attempts: int) -> Sequence[str]:
        """Take back the jobs whose lease ended before `now`; their ids.

        They are queued again, or cancelled if that was asked for. A job that has lost its worker
        `max_attempts` times since it was created or resumed fails with the code "worker_lost", so
        that one which kills its workers does not go round for ever.
        """
        with self._database.read() as session:
            ids = session.scalars(select(JobRow.id).where(*_lost(now))).all()
        return [job_id for job_id in ids if self._reap(job_id, now, max_attempts)]

    def _reap(self, job_id: str, now: datetime, max_attempts: int) -> bool:
        lost = select(JobRow).where(JobRow.id == job_id, *_lost(now))
        with self._job(job_id) as session:
            row = session.scalars(lost.with_for_update()).one_or_none()
            if row is None:
                return False  # somebody else has taken it back meanwhile
            _take_back(session, row, max_attempts)
            return True

    @contextmanager
    def _job(self, job_id: str) -> Iterator[Session]:
        """A transaction that changes a job; the one that it is a part of follows."""
        with self._database.begin() as session, parts.settled(session, job_id):
            yield session


def _lost(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return JobRow.status.in_(CLAIMED), JobRow.lease_until < now


def _take_back(session: Session, row: JobRow, max_attempts: int) -> None:
    """Decide what becomes of a job whose worker was lost."""
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
