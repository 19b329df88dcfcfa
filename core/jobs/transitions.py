"""The states of a job, and the statements that change them.

    queued → running → succeeded | failed | cancelled
    running → cancelling → cancelled on request
    running → queued when the worker stops or is lost
    failed | cancelled → queued on resume

The statements compare and set: `UPDATE … WHERE status = … AND attempt = …`. `attempt` is the
fencing token and grows with each claim. A worker that was taken for lost has an old one, so all its
writes fail with `LostClaim`. Each change of state writes an event in the same transaction.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, func, select, update
from sqlalchemy.orm import Session

from core.clock import database_now, now
from core.database.schema import JobRow, Json
from core.exceptions import LostClaim, NotFound
from core.jobs import events
from core.webhooks.event_types import OF_JOBS
from core.webhooks.outbox import tell


class JobStatus(StrEnum):
    """The states of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})
CLAIMED = frozenset({JobStatus.RUNNING, JobStatus.CANCELLING})
UNFINISHED = frozenset(JobStatus) - FINAL


@dataclass(frozen=True)
class Claim:
    """The right to work on a job, until its lease ends or another attempt begins."""

    job_id: str
    attempt: int
    worker: str


@dataclass(frozen=True)
class Origin:
    """The request that created a job: its id in the logs, and its span in a trace."""

    request_id: str | None = None
    traceparent: str | None = None


NOWHERE = Origin()


def get_row(session: Session, job_id: str) -> JobRow:
    """The row, read again from the database. Raises `NotFound`."""
    return _one(session, select(JobRow).where(JobRow.id == job_id), job_id)


def lock_row(session: Session, job_id: str) -> JobRow:
    """As `get_row`, locked until the transaction ends."""
    return _one(session, select(JobRow).where(JobRow.id == job_id).with_for_update(), job_id)


def _one(session: Session, query: Select[JobRow], job_id: str) -> JobRow:
    row = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if row is None:
        raise NotFound("job", job_id)
    return row


def change_status(
    session: Session, job_id: str, old: Collection[JobStatus], new: JobStatus, **values: Any
) -> bool:
    """Change the status from one of `old` to `new`. False if it is another; nothing changes."""
    changed = session.scalars(
        update(JobRow)
        .where(JobRow.id == job_id, JobRow.status.in_(old))
        .values(status=new, **values)
        .returning(JobRow.id)
    )
    return changed.one_or_none() is not None


def change_claimed(session: Session, claim: Claim, **values: Any) -> JobStatus:
    """Set columns of a claimed job and return its status. Raises `LostClaim`."""
    changed = session.scalars(
        update(JobRow)
        .where(
            JobRow.id == claim.job_id,
            JobRow.attempt == claim.attempt,
            JobRow.status.in_(CLAIMED),
        )
        .values(**values)
        .returning(JobRow.status)
    )
    status = changed.one_or_none()
    if status is None:
        raise LostClaim(f"attempt {claim.attempt} of job {claim.job_id} is not the present one")
    return JobStatus(status)


def lock_claimed(session: Session, claim: Claim) -> JobStatus:
    """Lock a claimed job until the transaction ends; return its status. Raises `LostClaim`."""
    return change_claimed(session, claim, attempt=claim.attempt)


def complete(
    session: Session,
    claim: Claim,
    status: JobStatus,
    *,
    error: Json | None = None,
    metrics: Json | None = None,
    version: int | None = None,
) -> None:
    """End a locked job."""
    change_claimed(
        session,
        claim,
        status=status,
        worker=None,
        lease_until=None,
        error=error,
        version=version,
        metrics=get_row(session, claim.job_id).metrics | (metrics or {}),
        finished_at=now(),
    )
    details = {"error": error, "version": version}
    record_status(
        session, claim.job_id, status, **{k: v for k, v in details.items() if v is not None}
    )


def requeue(
    session: Session, job_id: str, old: Collection[JobStatus], reason: str, **values: Any
) -> bool:
    """Move a job from one of the `old` states to the end of the queue. False if in another."""
    unclaimed = {"worker": None, "lease_until": None, "started_at": None, "finished_at": None}
    place = queue_end(session)
    moved = change_status(
        session, job_id, old, JobStatus.QUEUED, queued_at=place, **unclaimed, **values
    )
    if moved:
        record_status(session, job_id, JobStatus.QUEUED, reason=reason)
    return moved


def queue_end(session: Session) -> datetime:
    """A `queued_at` after all others, even if the clock was set back."""
    last = select(func.max(JobRow.queued_at)).where(JobRow.status == JobStatus.QUEUED)
    newest, moment = session.scalars(last).one(), database_now(session)
    return moment if newest is None else max(moment, newest + timedelta(microseconds=1))


def record_status(session: Session, job_id: str, status: JobStatus, **details: Any) -> None:
    """Write the event of a new status. When a job ends, tell its owner's webhooks."""
    events.append(session, job_id, "state", {"status": status.value, **details})
    if status in FINAL:
        _tell_end(session, get_row(session, job_id))


def _tell_end(session: Session, row: JobRow) -> None:
    """Tell of a job's end. Parts end with their job."""
    if row.parent is not None:
        return
    names = ("id", "kind", "model", "dataset", "version", "error")
    tell(session, row.owner, OF_JOBS[row.status], row.id, {n: getattr(row, n) for n in names})
