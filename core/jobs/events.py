"""The events of a job: written in the transaction that makes the change, read in order."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from core.clock import now
from core.database.schema import EventRow, JobRow, Json

EventType = Literal["state", "progress", "metrics", "log", "gate"]


@dataclass(frozen=True)
class Event:
    """One event; `id` counts up from 1 within its job."""

    id: int
    type: str
    time: datetime
    data: dict[str, Any]


def append(session: Session, job_id: str, type: EventType, data: Json) -> None:
    """Add an event inside the caller's transaction.

    The counter is a column of the job's row. Its lock orders the writers, so no number is missing.
    """
    number = session.execute(
        update(JobRow)
        .where(JobRow.id == job_id)
        .values(last_event=JobRow.last_event + 1)
        .returning(JobRow.last_event)
    ).scalar_one()
    session.add(EventRow(job_id=job_id, id=number, type=type, time=now(), data=data))


def read(session: Session, job_id: str, after: int, limit: int) -> list[Event]:
    """At most `limit` events with an id greater than `after`, oldest first."""
    of_job = select(EventRow).where(EventRow.job_id == job_id, EventRow.id > after)
    rows = session.scalars(of_job.order_by(EventRow.id).limit(limit))
    return [row.to(Event) for row in rows]
