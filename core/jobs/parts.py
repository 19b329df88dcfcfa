"""Jobs in parts: the transaction that changes a part also updates the state of the parent.

The parts of an offline prediction are chunks of its rows; those of a comparison are trainings.
Workers claim parts like any job, but never the parent. The parent starts when its first part is
claimed and ends in the transaction that ends its last part, so that no crash can come in between.
If a chunk fails, the other chunks are stopped, because the result needs all. The trainings of a
comparison do not affect each other.

The parent's row is always locked before a part's. So if two workers finish at the same time, the
second counts after the first has committed, and there are no deadlocks.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.database.schema import JobRow, Json
from core.jobs import events
from core.jobs.transitions import (
    CLAIMED,
    UNFINISHED,
    JobStatus,
    change_status,
    get_row,
    lock_row,
    queue_end,
    record_status,
)

Counts = Counter[str]

UNITS = {"predict": "chunk", "compare": "method"}  # what a parent's progress counts, by kind
PARENT_KINDS = frozenset(UNITS)  # kinds of jobs in parts, which workers do not claim
PROGRESS_STEP = 0.01  # least growth of the fraction for a new event


@contextmanager
def updating_parent(session: Session, job_id: str) -> Iterator[None]:
    """Around a block that changes a job: lock its parent, and update it at the end, if any."""
    parent = session.scalars(select(JobRow.parent).where(JobRow.id == job_id)).one_or_none()
    if parent is not None:
        lock_row(session, parent)
    yield
    if parent is not None:
        update_parent(session, parent)


def update_parent(session: Session, job_id: str) -> None:
    """Set the state of a locked parent from the states of its parts."""
    parent, counts = get_row(session, job_id), _counts(session, job_id)
    if parent.kind == "predict" and counts[JobStatus.FAILED] and _unfinished(counts):
        _stop(session, job_id)
        counts = _counts(session, job_id)
    if any(counts[status] for status in CLAIMED):
        _start(session, job_id)
    _report(session, job_id, counts)
    if not _unfinished(counts):
        _end(session, job_id, counts)


def cancel(session: Session, job_id: str) -> None:
    """Cancel the queued parts of a locked parent. Running parts are stopped by their workers."""
    _stop(session, job_id)
    if _unfinished(_counts(session, job_id)):
        if change_status(session, job_id, {JobStatus.RUNNING}, JobStatus.CANCELLING):
            record_status(session, job_id, JobStatus.CANCELLING)
    else:
        update_parent(session, job_id)


def restart(session: Session, job_id: str) -> None:
    """Queue the failed and cancelled parts of a parent again."""
    undone = {JobStatus.FAILED, JobStatus.CANCELLED}
    _move_all(
        session,
        job_id,
        undone,
        JobStatus.QUEUED,
        queued_at=queue_end(session),
        started_at=None,
        finished_at=None,
        error=None,
        losses=0,
    )


def _stop(session: Session, job_id: str) -> None:
    _move_all(session, job_id, {JobStatus.QUEUED}, JobStatus.CANCELLED, finished_at=now())
    _move_all(session, job_id, {JobStatus.RUNNING}, JobStatus.CANCELLING)


def _move_all(
    session: Session, job_id: str, old: Collection[JobStatus], new: JobStatus, **values: Any
) -> None:
    """Change the status of parts, with an event for each training. Chunks have no events."""
    parts = JobRow.parent == job_id, JobRow.status.in_(old)
    moved = update(JobRow).where(*parts).values(status=new, **values)
    for part in session.execute(moved.returning(JobRow.id, JobRow.kind)).all():
        if part.kind != "chunk":
            record_status(session, part.id, new)


def _counts(session: Session, job_id: str) -> Counts:
    query = select(JobRow.status, func.count().label("number")).where(JobRow.parent == job_id)
    rows = session.execute(query.group_by(JobRow.status))
    return Counter({row.status: row.number for row in rows})


def _unfinished(counts: Counts) -> int:
    return sum(counts[status] for status in UNFINISHED)


def _start(session: Session, job_id: str) -> None:
    values = {"started_at": now(), "attempt": JobRow.attempt + 1}
    if change_status(session, job_id, {JobStatus.QUEUED}, JobStatus.RUNNING, **values):
        attempt = get_row(session, job_id).attempt
        record_status(session, job_id, JobStatus.RUNNING, attempt=attempt)


def _report(session: Session, job_id: str, counts: Counts) -> None:
    """Write the parent's progress if a part succeeded or the fraction grew by a step."""
    parent, parts = get_row(session, job_id), counts.total()
    unit = UNITS[parent.kind]
    done = counts[JobStatus.SUCCEEDED]
    rows = _rows(session, parent, done)
    fraction = (done + _begun(session, job_id)) / parts
    if rows:
        fraction = rows["row"] / rows["rows"]
    before = parent.progress or {unit: 0, "fraction": 0.0}
    if done == before[unit] and abs(fraction - before["fraction"]) < PROGRESS_STEP:
        return
    progress: Json = {
        unit: done,
        f"{unit}s": parts,
        **rows,
        "fraction": fraction,
        "eta_seconds": _eta_seconds(session, parent, fraction, parts),
    }
    session.execute(update(JobRow).where(JobRow.id == job_id).values(progress=progress))
    events.append(session, job_id, "progress", progress)


def _rows(session: Session, parent: JobRow, done: int) -> Json:
    """How many rows of an offline prediction are done; nothing of jobs of earlier releases."""
    rows = parent.spec.get("rows", 0)
    if not rows:
        return {}
    size = parent.spec["chunk_rows"]
    newest = select(JobRow.status).where(JobRow.parent == parent.id)
    last = session.scalars(newest.order_by(JobRow.number.desc()).limit(1)).one()
    missing = -rows % size if last == JobStatus.SUCCEEDED else 0  # of the last chunk
    return {"row": done * size - missing, "rows": rows}


def _begun(session: Session, job_id: str) -> float:
    """The sum of the fractions of unfinished parts; chunks report none."""
    begun = JobRow.progress.is_not(None), JobRow.status != JobStatus.SUCCEEDED
    query = select(JobRow.progress).where(JobRow.parent == job_id, *begun)
    return sum(progress["fraction"] for progress in session.scalars(query) if progress)


def _eta_seconds(session: Session, parent: JobRow, fraction: float, parts: int) -> float | None:
    """The time left at the pace since the last start. Parts done before that do not count."""
    if parent.started_at is None:
        return None
    past = JobRow.status == JobStatus.SUCCEEDED, JobRow.finished_at < parent.started_at
    query = select(func.count()).where(JobRow.parent == parent.id, *past)
    gained = fraction - session.scalars(query).one() / parts
    seconds = (now() - parent.started_at).total_seconds()
    return seconds * (1 - fraction) / gained if gained > 0 else None


def _end(session: Session, job_id: str, counts: Counts) -> None:
    status, error = JobStatus.SUCCEEDED, None
    parent = get_row(session, job_id)
    if parent.status == JobStatus.CANCELLING:
        status = JobStatus.CANCELLED
    elif counts[JobStatus.FAILED]:
        status, error = JobStatus.FAILED, _error(session, parent)
    elif counts[JobStatus.CANCELLED]:
        status = JobStatus.CANCELLED
    if change_status(session, job_id, UNFINISHED, status, error=error, finished_at=now()):
        record_status(session, job_id, status, **({"error": error} if error else {}))


def _error(session: Session, parent: JobRow) -> Json | None:
    """The first error; for a comparison with the messages of all failed methods."""
    failed = JobRow.parent == parent.id, JobRow.status == JobStatus.FAILED
    query = select(JobRow).where(*failed).order_by(JobRow.finished_at, JobRow.number)
    rows = session.scalars(query).all()
    first = rows[0].error
    if first is None or parent.kind == "predict":
        return first
    messages = [f"{row.spec['name']}: {(row.error or first)['message']}" for row in rows]
    return {"code": first["code"], "message": "; ".join(messages)}
