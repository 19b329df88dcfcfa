"""Numbers of the queue and its workers, for metrics.

They count what workers claim: jobs, and in place of a job in parts its parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from core.clock import database_now
from core.database.database import Database
from core.database.schema import EventRow, JobRow, WorkerRow
from core.jobs.parts import PARENT_KINDS
from core.jobs.transitions import CLAIMED, JobStatus
from core.webhooks.deliveries import count_pending

LIVE = timedelta(seconds=30)  # a worker beats every 2 s
KNOWN = timedelta(minutes=15)  # how long a lost worker counts; one that stops is deleted


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """The numbers. Ages are in seconds; 0 if there is nothing to measure."""

    jobs: Mapping[str, int]  # by status, zeros included; parts are not counted
    queued: int
    oldest_seconds: float  # how long the first in the queue has waited
    claimed: int
    lease_ended: int  # claimed jobs whose lease has ended, not yet taken back
    silent_seconds: float  # longest time since the last event of a claimed job
    live_workers: Mapping[str, int]  # by device: with a heartbeat within `LIVE`
    known_workers: Mapping[str, int]  # by device: with a heartbeat within `KNOWN`
    deliveries: int  # to webhooks, that have not ended


def read_backlog(database: Database) -> Backlog:
    """The numbers now. Raises `Unavailable`."""
    with database.read() as session:
        moment = database_now(session)
        queued, oldest = _queue(session)
        claimed, lease_ended, last_event = _claims(session, moment)
        return Backlog(
            jobs=_jobs(session),
            queued=queued,
            oldest_seconds=_age(moment, oldest),
            claimed=claimed,
            lease_ended=lease_ended,
            silent_seconds=_age(moment, last_event),
            live_workers=_workers(session, moment, LIVE),
            known_workers=_workers(session, moment, KNOWN),
            deliveries=count_pending(session),
        )


def _jobs(session: Session) -> dict[str, int]:
    query = select(JobRow.status, func.count().label("number")).where(JobRow.parent.is_(None))
    found = {row.status: row.number for row in session.execute(query.group_by(JobRow.status))}
    return {status.value: found.get(status.value, 0) for status in JobStatus}


def _queue(session: Session) -> tuple[int, datetime | None]:
    waits = JobRow.status == JobStatus.QUEUED, JobRow.kind.not_in(PARENT_KINDS)
    number, oldest = session.execute(
        select(func.count(), func.min(JobRow.queued_at)).where(*waits)
    ).one()
    return number, oldest


def _claims(session: Session, moment: datetime) -> tuple[int, int, datetime | None]:
    """The claimed jobs, those whose lease has ended, and the oldest of their last events."""
    last = and_(EventRow.job_id == JobRow.id, EventRow.id == JobRow.last_event)
    lost = func.count().filter(JobRow.lease_until < moment)
    claimed, lease_ended, time = session.execute(
        select(func.count(), lost, func.min(EventRow.time))
        .select_from(JobRow)
        .outerjoin(EventRow, last)
        .where(JobRow.status.in_(CLAIMED), JobRow.kind.not_in(PARENT_KINDS))
    ).one()
    return claimed, lease_ended, time


def _workers(session: Session, moment: datetime, within: timedelta) -> dict[str, int]:
    recent = func.count().filter(WorkerRow.heartbeat_at >= moment - within).label("number")
    rows = session.execute(select(WorkerRow.device, recent).group_by(WorkerRow.device))
    return {row.device: row.number for row in rows}


def _age(moment: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (moment - since).total_seconds())
