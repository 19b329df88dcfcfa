"""Jobs in chunks: the parent is what its chunks make it, in the transaction that changes a chunk.

Chunks are claimed, leased and taken back like any job; their parent is never claimed. It runs from
its first chunk's claim on, and ends with its last chunk: whoever commits that change has ended
both, so that no crash comes in between. A chunk that fails stops the others.

The parent's row is locked before a chunk's, always: that orders those who finish at the same moment
(the second one counts after the first has committed), and nobody waits in a circle.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from core import events
from core.names import now
from core.schema import JobRow, Json
from core.transitions import (
    CLAIMED,
    UNFINISHED,
    JobStatus,
    get_row,
    lock_row,
    move,
    tell,
)

Counts = Counter[str]


def lock_parent(session: Session, job_id: str) -> str | None:
    """Lock the parent of a chunk, before the chunk itself; None for a job that is no chunk."""
    parent = session.scalars(select(JobRow.parent).where(JobRow.id == job_id)).one_or_none()
    if parent is not None:
        lock_row(session, parent)
    return parent


def settle(session: Session, parent_id: str) -> None:
    """Bring a locked parent to the state that follows from its chunks."""
    counts = _counts(session, parent_id)
    if counts[JobStatus.FAILED] and _unfinished(counts):
        _stop(session, parent_id)
        counts = _counts(session, parent_id)
    if any(counts[status] for status in CLAIMED):
        _start(session, parent_id)
    _report(session, parent_id, counts)
    if not _unfinished(counts):
        _end(session, parent_id, counts)


def cancel(session: Session, parent_id: str) -> None:
    """Cancel the chunks of a locked parent that wait, ask the workers of the others to stop."""
    _stop(session, parent_id)
    if _unfinished(_counts(session, parent_id)):
        if move(session, parent_id, {JobStatus.RUNNING}, JobStatus.CANCELLING):
            tell(session, parent_id, JobStatus.CANCELLING)
    else:
        settle(session, parent_id)


def restart(session: Session, parent_id: str) -> None:
    """Queue the chunks of a parent that has ended again, but for those that are done."""
    undone = {JobStatus.FAILED, JobStatus.CANCELLED}
    _move_all(
        session,
        parent_id,
        undone,
        JobStatus.QUEUED,
        queued_at=now(),
        started_at=None,
        finished_at=None,
        error=None,
        losses=0,
    )


def _stop(session: Session, parent_id: str) -> None:
    _move_all(session, parent_id, {JobStatus.QUEUED}, JobStatus.CANCELLED, finished_at=now())
    _move_all(session, parent_id, {JobStatus.RUNNING}, JobStatus.CANCELLING)


def _move_all(
    session: Session, parent_id: str, old: Collection[JobStatus], new: JobStatus, **values: Any
) -> None:
    chunks = JobRow.parent == parent_id, JobRow.status.in_(old)
    session.execute(update(JobRow).where(*chunks).values(status=new, **values))


def _counts(session: Session, parent_id: str) -> Counts:
    query = select(JobRow.status, func.count().label("number")).where(JobRow.parent == parent_id)
    rows = session.execute(query.group_by(JobRow.status))
    return Counter({row.status: row.number for row in rows})


def _unfinished(counts: Counts) -> int:
    return sum(counts[status] for status in UNFINISHED)


def _start(session: Session, parent_id: str) -> None:
    values = {"started_at": now(), "attempt": JobRow.attempt + 1}
    if move(session, parent_id, {JobStatus.QUEUED}, JobStatus.RUNNING, **values):
        attempt = get_row(session, parent_id).attempt
        tell(session, parent_id, JobStatus.RUNNING, attempt=attempt)


def _report(session: Session, parent_id: str, counts: Counts) -> None:
    """Tell the parent's progress whenever another chunk is done."""
    parent = get_row(session, parent_id)
    done, chunks = counts[JobStatus.SUCCEEDED], counts.total()
    if done == (parent.progress or {"chunk": 0})["chunk"]:
        return
    progress: Json = {
        "chunk": done,
        "chunks": chunks,
        "fraction": done / chunks,
        "eta_seconds": _eta_seconds(session, parent, chunks - done),
    }
    session.execute(update(JobRow).where(JobRow.id == parent_id).values(progress=progress))
    events.append(session, parent_id, "progress", progress)


def _eta_seconds(session: Session, parent: JobRow, chunks_left: int) -> float | None:
    """What is left at the pace since the present start; a resumed job has chunks from before."""
    if parent.started_at is None:
        return None
    done = JobRow.status == JobStatus.SUCCEEDED, JobRow.finished_at >= parent.started_at
    query = select(func.count()).where(JobRow.parent == parent.id, *done)
    seconds = (now() - parent.started_at).total_seconds()
    return chunks_left * seconds / max(1, session.scalars(query).one())


def _end(session: Session, parent_id: str, counts: Counts) -> None:
    status, error = JobStatus.SUCCEEDED, None
    if get_row(session, parent_id).status == JobStatus.CANCELLING:
        status = JobStatus.CANCELLED
    elif counts[JobStatus.FAILED]:
        status, error = JobStatus.FAILED, _first_error(session, parent_id)
    elif counts[JobStatus.CANCELLED]:
        status = JobStatus.CANCELLED
    if move(session, parent_id, UNFINISHED, status, error=error, finished_at=now()):
        tell(session, parent_id, status, **({"error": error} if error else {}))


def _first_error(session: Session, parent_id: str) -> Json | None:
    failed = JobRow.parent == parent_id, JobRow.status == JobStatus.FAILED
    query = select(JobRow.error).where(*failed).order_by(JobRow.finished_at, JobRow.number)
    return session.scalars(query.limit(1)).one()
