"""Schedules: created, listed, deleted, and run.

A schedule is a row. Its `next_due` alone says whether a run is due: any worker may start it, and
`core.schedules.starts` lets one of them. The work of a run is a training job.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Row, Select, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.access import audit
from core.access.callers import SERVICE, Caller, Kind, check_change, owner_of
from core.access.quotas import lock_owner
from core.clock import database_now
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, Json, ScheduleRow, ScheduleRunRow
from core.exceptions import Conflict, Invalid, LimitReached
from core.jobs.specs import TrainSpec
from core.names import check_identifier
from core.paging import Page, read_newest
from core.registry import versions
from core.schedules import cron
from core.schedules.records import Run, Schedule
from core.schedules.starts import Clock, Starts

SCHEDULE = Kind("schedule", ScheduleRow.name, ScheduleRow.owner)
UTC_NAME = "UTC"
MOST = 1000  # schedules of an owner
RETRY_SECONDS = 3600
NEWEST_RUNS = 10  # that a schedule shows; `runs` lists all


@dataclass(frozen=True)
class When:
    """When a schedule runs: by a cron expression, or if that is None when its data are refreshed.

    Args:
        time_zone: whose clock the expression means.
    """

    cron: str | None = None
    time_zone: str = UTC_NAME

    def check(self) -> None:
        """Raise `Invalid` for an expression or a time zone that cannot be read."""
        cron.check(self.cron or "0 0 * * *", self.time_zone)


class Schedules:
    """The table of schedules, restricted to those of `caller` and of everybody."""

    def __init__(
        self, database: Database, caller: Caller = SERVICE, clock: Clock = database_now
    ) -> None:
        self._database, self._caller, self._clock = database, caller, clock

    def create(self, name: str, spec: TrainSpec, when: When, request: Json) -> Schedule:
        """Store a schedule. Nothing runs until it is due.

        Args:
            spec: of the next run; it has the gate in `scheduled`.
            request: what `GET /schedules/{name}` shows of it.

        Raises:
            Invalid: the expression or time zone is wrong; or the schedule waits for a refresh of
                a data set that was uploaded.
            Conflict: there is a schedule with this name.
            NotOwner: the model is another owner's.
        """
        when.check()
        assert spec.scheduled is not None
        with self._database.begin() as session:
            lock_owner(session, self._caller)
            self._check_number(session)
            versions.reserve(session, spec.model, self._caller, self._caller.owner)
            moment = self._clock(session)
            row = ScheduleRow(
                name=name,
                owner=self._caller.owner,
                actor=self._caller.actor,
                key=self._caller.key,
                request=request,
                spec=spec.model_dump(mode="json"),
                gate=asdict(spec.scheduled.gate),
                dataset=spec.dataset,
                variant=_variant(session, spec.dataset, when),
                cron=when.cron,
                time_zone=when.time_zone,
                next_due=when.cron and cron.next_due(when.cron, when.time_zone, moment),
                created_at=moment,
            )
            try:
                with session.begin_nested():
                    session.add(row)
            except IntegrityError:
                raise Conflict(f"there is a schedule {name!r}: take another name") from None
            audit.record(session, self._caller, "schedule.create", name, model=spec.model)
            made = _schedule(session, row)
            self._caller.record(session, name, made)
            return made

    def get(self, name: str) -> Schedule:
        """The schedule, or `NotFound`."""
        check_identifier("schedule", name)
        with self._database.read() as session:
            owner_of(session, self._caller, SCHEDULE, name)
            return _schedule(session, _row(session, name))

    def list(self, limit: int = 20, cursor: str | None = None) -> Page[Schedule]:
        """Schedules, newest first."""
        query = select(ScheduleRow).where(self._caller.view.of(SCHEDULE))
        with self._database.read() as session:
            page = read_newest(
                session, "schedules", query, ScheduleRow.number, limit, cursor, self._caller.hold
            )
            return Page([_schedule(session, row) for row in page.data], page.next_cursor)

    def runs(self, name: str, limit: int = 20, cursor: str | None = None) -> Page[Run]:
        """The runs of a schedule, newest first. Raises `NotFound`."""
        check_identifier("schedule", name)
        with self._database.read() as session:
            owner_of(session, self._caller, SCHEDULE, name)
            query = _runs(_row(session, name).number)
            page = read_newest(
                session, "runs", query, ScheduleRunRow.number, limit, cursor, self._caller.hold
            )
            return Page(_with_jobs(session, page.data), page.next_cursor)

    def delete(self, name: str) -> None:
        """Delete a schedule and its list of runs. A job that has begun goes on, with its gate."""
        check_identifier("schedule", name)
        with self._database.begin() as session:
            check_change(session, self._caller, SCHEDULE, name)
            audit.record(session, self._caller, "schedule.delete", name)
            session.delete(_row(session, name))

    def run(self, name: str) -> Run:
        """Start a run now. `next_due` stays. Then wake a worker for the run's job.

        Raises:
            NotFound: there is no such schedule.
            Conflict: a run has not ended; or the job cannot be queued, such as after its data set
                was deleted.
            LimitReached: as `Jobs.create`.
        """
        check_identifier("schedule", name)
        with self._database.begin() as session:
            check_change(session, self._caller, SCHEDULE, name)
            row = _row(session, name)
            audit.record(session, self._caller, "schedule.run", name)
            found = Starts(self._database, self._clock).start(session, row, "manual")
            if found.job is None:
                raise Conflict(f"schedule {name!r} cannot run: {(found.outcome or {})['reason']}")
            made = _with_jobs(session, [found])[0]
            self._caller.record(session, str(found.number), made)
            return made

    def _check_number(self, session: Session) -> None:
        mine = select(func.count()).where(ScheduleRow.owner == self._caller.owner)
        if session.scalars(mine).one() >= MOST:
            message = f"there are {MOST} schedules, the most of an owner: delete one"
            raise LimitReached(message, RETRY_SECONDS)


def _row(session: Session, name: str) -> ScheduleRow:
    return session.scalars(select(ScheduleRow).where(ScheduleRow.name == name)).one()


def _variant(session: Session, dataset: str, when: When) -> str:
    """What matches later data sets of the same source; "" if the data set was uploaded."""
    row = session.scalars(select(DatasetRow).where(DatasetRow.id == dataset)).one()
    if "provenance" in (row.about or {}):
        return row.variant
    if when.cron is None:
        message = f"waits for a refresh, and data set {dataset} was uploaded: give cron"
        raise Invalid([("/on", message)])
    return ""


def _runs(schedule: int) -> Select[ScheduleRunRow]:
    return select(ScheduleRunRow).where(ScheduleRunRow.schedule == schedule)


def _schedule(session: Session, row: ScheduleRow) -> Schedule:
    newest = _runs(row.number).order_by(ScheduleRunRow.number.desc()).limit(NEWEST_RUNS)
    runs = _with_jobs(session, session.scalars(newest).all())
    model, alias = row.spec["model"], row.spec["alias"]
    return row.to(Schedule, model=model, alias=alias, runs=tuple(runs))


def _with_jobs(session: Session, rows: Sequence[ScheduleRunRow]) -> list[Run]:
    """The runs of these rows, with the state of their jobs."""
    ids = [row.job for row in rows if row.job is not None]
    state = select(JobRow.id, JobRow.status, JobRow.version)  # a specification may be long
    jobs = {job.id: job for job in session.execute(state.where(JobRow.id.in_(ids)))}
    return [_run(row, jobs.get(row.job or "")) for row in rows]


def _run(row: ScheduleRunRow, job: Row[str, str, int | None] | None) -> Run:
    decided = None if row.outcome is None else row.outcome["decision"]
    status = decided or (job.status if job is not None else "failed")
    return row.to(Run, status=status, version=None if job is None else job.version)
