"""Starts runs: of schedules that are due, and when a caller asks for one.

To start is to move `next_due` and to queue the run's job, in one transaction that compares and
sets. So two workers never start a run twice, and a worker that is killed leaves either both or
nothing. After that the job's own lease and attempts take over.
"""

from collections.abc import Callable
from datetime import datetime

import structlog
from sqlalchemy import ColumnElement, exists, select, update
from sqlalchemy.orm import Session

from core.access.callers import Caller, Quota, View
from core.clock import database_now
from core.database.database import Database
from core.database.schema import JobRow, KeyRow, ScheduleRow, ScheduleRunRow
from core.exceptions import Conflict, CredenceError, LimitReached, NotFound, NotOwner
from core.jobs.jobs import Jobs
from core.jobs.specs import Reason, TrainSpec
from core.jobs.transitions import UNFINISHED
from core.schedules.cron import count_due, next_due

log = structlog.get_logger()

Clock = Callable[[Session], datetime]

MOST_AT_ONCE = 100  # in one round of a worker; the next round takes the others


class Starts:
    """Starts the runs of schedules, whoever owns them."""

    def __init__(self, database: Database, clock: Clock = database_now) -> None:
        self._database, self._clock = database, clock

    def start_due(self) -> list[str | None]:
        """Start the runs that are due, each once.

        Returns the ids of their jobs, to be sent; None for a run whose job could not be queued.

        A schedule whose run has not ended waits, and so does one whose owner has as many unfinished
        jobs as allowed. However many times were missed, one run catches them up.
        """
        with self._database.read() as session:
            is_due = ScheduleRow.next_due <= self._clock(session)
            query = select(ScheduleRow).where(is_due, ~_has_unfinished_run())
            due = session.scalars(query.order_by(ScheduleRow.next_due).limit(MOST_AT_ONCE)).all()
        started = (self._start_due(row.number, row.next_due) for row in due if row.next_due)
        return [run.job for run in started if run is not None]

    def _start_due(self, number: int, seen: datetime) -> ScheduleRunRow | None:
        """Start the run that was due at `seen`, unless another worker has, or it must wait."""
        try:
            with self._database.begin() as session:
                row = _claimed(session, number, seen, self._clock(session))
                if row is None:
                    return None
                run = self.start(session, row, "cron" if row.cron else "refresh", seen)
                log.info("schedule started", schedule=row.name, job_id=run.job, due_at=str(seen))
                return run
        except (Conflict, LimitReached) as error:  # `next_due` is as before
            log.info("schedule waits", reason=str(error))
            return None

    def start(
        self, session: Session, row: ScheduleRow, reason: Reason, due_at: datetime | None = None
    ) -> ScheduleRunRow:
        """Queue the job of a run of a locked schedule.

        A run whose job cannot be queued has no job, and the outcome `failed`.

        Args:
            due_at: by default now.

        Raises:
            Conflict: a run has not ended.
            LimitReached: the owner would have more unfinished jobs than its quota.
        """
        unfinished = select(ScheduleRow).where(ScheduleRow.number == row.number)
        if session.scalars(unfinished.where(_has_unfinished_run())).one_or_none():
            raise Conflict(f"a run of schedule {row.name!r} has not ended: wait, or cancel its job")
        moment = self._clock(session)
        due_at = due_at or moment
        is_cron = reason == "cron" and row.cron is not None
        missed = count_due(str(row.cron), row.time_zone, due_at, moment) if is_cron else 0
        run = ScheduleRunRow(
            schedule=row.number, reason=reason, due_at=due_at, missed=missed, created_at=moment
        )
        try:
            with session.begin_nested():
                run.job = self._queue(session, row, reason)
        except (NotFound, NotOwner, NoKey) as error:
            run.outcome = {"decision": "failed", "reason": str(error)}
            log.warning("schedule failed", schedule=row.name, reason=str(error))
        session.add(run)
        session.flush()
        return run

    def _queue(self, session: Session, row: ScheduleRow, reason: Reason) -> str:
        """Queue the training. Returns its id."""
        spec = TrainSpec.model_validate(row.spec)
        assert spec.scheduled is not None
        has_source = bool(row.variant)
        scheduled = spec.scheduled.model_copy(
            update={"reason": reason, "refreshes": has_source and reason != "refresh"}
        )
        spec = spec.model_copy(update={"dataset": row.dataset, "scheduled": scheduled})
        return Jobs(self._database, caller_of(session, row)).insert(session, spec).id


class NoKey(CredenceError):
    """All keys of a schedule's owner are revoked."""


def caller_of(session: Session, row: ScheduleRow) -> Caller:
    """The caller that runs of a schedule act for: its owner, with the quota of the key.

    Raises:
        NoKey: the schedule was made with a key, and its owner has no key that is not revoked.
    """
    quota = Quota()
    if row.key is not None:
        is_valid = KeyRow.owner == row.owner, KeyRow.revoked_at.is_(None)
        if not session.scalars(select(exists().where(*is_valid))).one():
            raise NoKey(f"{row.owner!r} has no key that is not revoked")
        key = session.scalars(select(KeyRow).where(KeyRow.id == row.key)).one_or_none()
        if key is not None:
            quota = Quota(key.max_stored_bytes, key.max_queued_jobs)
    return Caller(View(row.owner, sees_all=False), f"schedule {row.name}", row.key, quota)


def _claimed(session: Session, number: int, seen: datetime, moment: datetime) -> ScheduleRow | None:
    """The schedule, locked and with its next due time; None if it was not due at `seen`."""
    row = session.get(ScheduleRow, number)
    if row is None:
        return None
    following = None if row.cron is None else next_due(row.cron, row.time_zone, moment)
    was_due = ScheduleRow.number == number, ScheduleRow.next_due == seen
    claim = update(ScheduleRow).where(*was_due).values(next_due=following)
    if session.scalars(claim.returning(ScheduleRow.number)).one_or_none() is None:
        return None
    session.refresh(row)
    return row


def _has_unfinished_run() -> ColumnElement[bool]:
    """The SQL condition for schedules with a run whose job has not ended."""
    return exists().where(
        ScheduleRunRow.schedule == ScheduleRow.number,
        ScheduleRunRow.job == JobRow.id,
        JobRow.status.in_(UNFINISHED),
    )
