"""Jobs: the row is the truth, the message in the queue only a wake-up.

    queued → running → succeeded | failed | cancelled, `cancelling` between running and cancelled;
    running → queued when its worker stops or is lost; failed | cancelled → queued on resume.

Every change is one compare-and-set statement: `UPDATE … WHERE status = … AND attempt = …`. `attempt`
grows with each claim and is the fencing token: a worker that was thought lost and comes back holds
an old one, and all that it writes is refused with `LostClaim`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from core import events
from core.database import Database
from core.events import Event, EventType
from core.exceptions import Conflict, LostClaim, NotFound
from core.names import new_id, now
from core.paging import Page, check_limit, decode_number, page_of
from core.schema import DatasetRow, JobRow, Json
from core.specs import EvaluateSpec, JobKind, TrainSpec

MAX_EVENTS = 10_000


class JobStatus(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})
CLAIMED = frozenset({JobStatus.RUNNING, JobStatus.CANCELLING})
UNFINISHED = frozenset(JobStatus) - FINAL


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as its row says; `started_at` is that of the present attempt."""

    id: str
    kind: str
    status: JobStatus
    model: str
    dataset: str
    version: int | None
    attempt: int
    queue_position: int | None  # 1 is next; None unless queued
    progress: dict[str, Any] | None
    metrics: dict[str, Any]
    error: dict[str, Any] | None
    request: dict[str, Any]
    spec: dict[str, Any]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class Claim:
    """The right to work on a job, until the lease ends or another attempt begins."""

    job_id: str
    attempt: int
    worker: str


class Jobs:
    """The state machine on the jobs table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, kind: JobKind, model: str, spec: TrainSpec | EvaluateSpec, request: Json
    ) -> Job:
        """Queue a job; send its id to the queue after this returns.

        Raises:
            NotFound: when the data set is gone.
        """
        with self._database.begin() as session:
            _require_dataset(session, spec.dataset)
            moment = now()
            row = JobRow(
                id=new_id("job"),
                kind=kind,
                model=model,
                dataset=spec.dataset,
                status=JobStatus.QUEUED,
                request=request,
                spec=spec.model_dump(mode="json"),
                created_at=moment,
                queued_at=moment,
            )
            session.add(row)
            session.flush()
            _tell_state(session, row.id, JobStatus.QUEUED)
            session.refresh(row)
            return _job(session, row)

    def get(self, job_id: str) -> Job:
        """The job, or `NotFound`."""
        with self._database.read() as session:
            return _job(session, _row(session, job_id))

    def list(
        self,
        status: JobStatus | None = None,
        model: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page[Job]:
        """Newest first."""
        query = select(JobRow).order_by(JobRow.number.desc()).limit(check_limit(limit) + 1)
        if status is not None:
            query = query.where(JobRow.status == status)
        if model is not None:
            query = query.where(JobRow.model == model)
        if cursor is not None:
            query = query.where(JobRow.number < decode_number("jobs", cursor))
        with self._database.read() as session:
            rows = list(session.scalars(query))
            jobs = [_job(session, row) for row in rows]
        return page_of("jobs", jobs, [row.number for row in rows], limit)

    def claim(self, job_id: str, worker: str, lease_seconds: float) -> Claim | None:
        """Take a queued job: of any number of workers that ask at once, one gets a claim."""
        with self._database.begin() as session:
            moment = now()
            attempt = session.execute(
                update(JobRow)
                .where(JobRow.id == job_id, JobRow.status == JobStatus.QUEUED)
                .values(
                    status=JobStatus.RUNNING,
                    attempt=JobRow.attempt + 1,
                    worker=worker,
                    lease_until=moment + timedelta(seconds=lease_seconds),
                    started_at=moment,
                )
                .returning(JobRow.attempt)
            ).scalar_one_or_none()
            if attempt is None:
                return None
            _tell_state(session, job_id, JobStatus.RUNNING, attempt=attempt)
            return Claim(job_id, attempt, worker)

    def heartbeat(self, claim: Claim, lease_seconds: float) -> JobStatus:
        """Extend the lease; the answer is `running`, or `cancelling` when the worker must stop."""
        with self._database.begin() as session:
            return _set(session, claim, lease_until=now() + timedelta(seconds=lease_seconds))

    def report(
        self, claim: Claim, progress: Json | None = None, metrics: Json | None = None
    ) -> JobStatus:
        """Replace the progress, add to the metrics, write an event for each."""
        with self._database.begin() as session:
            held = hold(session, claim)
            if progress is not None:
                _set(session, claim, progress=progress)
                events.append(session, claim.job_id, "progress", progress)
            if metrics:
                _set(session, claim, metrics=_row(session, claim.job_id).metrics | metrics)
                events.append(session, claim.job_id, "metrics", metrics)
            return held

    def event(self, claim: Claim, type: EventType, data: Json) -> None:
        """Write an event on behalf of the worker, such as a log line."""
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
    ) -> None:
        """End the job. One that was asked to cancel meanwhile does not succeed: it is cancelled."""
        if status not in FINAL:
            raise ValueError(f"{status!r} does not end a job: give one of {sorted(FINAL)}")
        with self._database.begin() as session:
            held = hold(session, claim)
            if held is JobStatus.CANCELLING and status is JobStatus.SUCCEEDED:
                status = JobStatus.CANCELLED
            complete(session, claim, status, error=error, metrics=metrics, version=version)

    def release(self, claim: Claim) -> None:
        """Give the job back because the worker stops; a job being cancelled is cancelled."""
        with self._database.begin() as session:
            if hold(session, claim) is JobStatus.CANCELLING:
                complete(session, claim, JobStatus.CANCELLED)
            else:
                _requeue(session, claim.job_id, "the worker stopped")

    def cancel(self, job_id: str) -> Job:
        """Cancel a queued job at once; ask the worker of a running one to stop.

        Raises:
            Conflict: when the job has ended.
        """
        with self._database.begin() as session:
            if _swap(session, job_id, {JobStatus.QUEUED}, JobStatus.CANCELLED, finished_at=now()):
                _tell_state(session, job_id, JobStatus.CANCELLED)
            elif _swap(session, job_id, {JobStatus.RUNNING}, JobStatus.CANCELLING):
                _tell_state(session, job_id, JobStatus.CANCELLING)
            row = _row(session, job_id)
            if row.status not in (JobStatus.CANCELLED, JobStatus.CANCELLING):
                raise Conflict(f"job {job_id} has {row.status} already: it cannot be cancelled")
            return _job(session, row)

    def resume(self, job_id: str) -> Job:
        """Queue a failed or cancelled job again; it goes on from its checkpoint if it has one.

        Raises:
            Conflict: in any other state, or when its data set was deleted.
        """
        with self._database.begin() as session:
            row = _row(session, job_id)
            try:
                _require_dataset(session, row.dataset)
            except NotFound as error:
                raise Conflict(f"job {job_id} cannot be resumed: {error}") from error
            if not _requeue(
                session,
                job_id,
                "resumed",
                when={JobStatus.FAILED, JobStatus.CANCELLED},
                losses=0,
                error=None,
            ):
                raise Conflict(
                    f"job {job_id} is {row.status}: only a failed or cancelled job can be resumed"
                )
            session.refresh(row)
            return _job(session, row)

    def reap(self, now: datetime, max_attempts: int) -> Sequence[str]:
        """Take back the jobs whose lease ended before `now`; their ids, to be sent again if queued.

        A job that loses its worker `max_attempts` times fails with the code "worker_lost", so that
        one which kills its workers does not go round for ever.
        """
        with self._database.begin() as session:
            rows = session.scalars(
                select(JobRow)
                .where(JobRow.status.in_(CLAIMED), JobRow.lease_until < now)
                .with_for_update(skip_locked=True)
            )
            return [_take_back(session, row, max_attempts) for row in rows]

    def queued_ids(self) -> Sequence[str]:
        """The queued jobs, next one first."""
        query = select(JobRow.id).where(JobRow.status == JobStatus.QUEUED)
        with self._database.read() as session:
            return list(session.scalars(query.order_by(JobRow.queued_at, JobRow.number)))

    def counts(self) -> dict[str, int]:
        """The number of jobs in each status, zeros included."""
        query = select(JobRow.status, func.count()).group_by(JobRow.status)
        with self._database.read() as session:
            found = {name: number for name, number in session.execute(query)}
        return {status.value: found.get(status.value, 0) for status in JobStatus}

    def events(self, job_id: str, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with an id greater than `after`, oldest first; `NotFound` without such a job."""
        check_limit(limit, MAX_EVENTS)
        with self._database.read() as session:
            found = events.read(session, job_id, after, limit)
            if not found:
                _row(session, job_id)
            return found


def hold(session: Session, claim: Claim) -> JobStatus:
    """Lock the claimed job until the transaction ends; its status. `LostClaim` if not ours."""
    return _set(session, claim, attempt=claim.attempt)


def complete(
    session: Session,
    claim: Claim,
    status: JobStatus,
    *,
    error: Json | None = None,
    metrics: Json | None = None,
    version: int | None = None,
) -> None:
    """End a job that `hold` has locked, within the caller's transaction."""
    row = _row(session, claim.job_id)
    _set(
        session,
        claim,
        status=status,
        worker=None,
        lease_until=None,
        error=error,
        version=version,
        metrics=row.metrics | (metrics or {}),
        finished_at=now(),
    )
    details = {"error": error, "version": version}
    _tell_state(session, claim.job_id, status, **{k: v for k, v in details.items() if v})


def _require_dataset(session: Session, dataset: str) -> None:
    """Lock the data set against deletion until the transaction ends."""
    query = select(DatasetRow.id).where(DatasetRow.id == dataset).with_for_update(read=True)
    if session.execute(query).scalar_one_or_none() is None:
        raise NotFound("dataset", dataset)


def _row(session: Session, job_id: str) -> JobRow:
    query = select(JobRow).where(JobRow.id == job_id).execution_options(populate_existing=True)
    row = session.scalars(query).one_or_none()
    if row is None:
        raise NotFound("job", job_id)
    return row


def _set(session: Session, claim: Claim, **values: Any) -> JobStatus:
    """Change the claimed row; its status, which `values` may have changed."""
    status = session.execute(
        update(JobRow)
        .where(
            JobRow.id == claim.job_id,
            JobRow.attempt == claim.attempt,
            JobRow.status.in_(CLAIMED),
        )
        .values(**values)
        .returning(JobRow.status)
    ).scalar_one_or_none()
    if status is None:
        raise LostClaim(f"attempt {claim.attempt} of job {claim.job_id} is not the present one")
    return JobStatus(status)


def _swap(
    session: Session, job_id: str, old: Iterable[JobStatus], new: JobStatus, **values: Any
) -> bool:
    """Compare and set the status; whether it was one of `old`."""
    changed = session.execute(
        update(JobRow)
        .where(JobRow.id == job_id, JobRow.status.in_(old))
        .values(status=new, **values)
        .returning(JobRow.id)
    )
    return changed.scalar_one_or_none() is not None


def _requeue(
    session: Session,
    job_id: str,
    reason: str,
    when: Iterable[JobStatus] = (JobStatus.RUNNING,),
    **values: Any,
) -> bool:
    released = {"worker": None, "lease_until": None, "started_at": None, "finished_at": None}
    if not _swap(session, job_id, when, JobStatus.QUEUED, queued_at=now(), **released, **values):
        return False
    _tell_state(session, job_id, JobStatus.QUEUED, reason=reason)
    return True


def _take_back(session: Session, row: JobRow, max_attempts: int) -> str:
    """Decide what becomes of a job whose worker was lost."""
    claim = Claim(row.id, row.attempt, row.worker or "")
    losses = row.losses + 1
    if row.status == JobStatus.CANCELLING:
        complete(session, claim, JobStatus.CANCELLED)
    elif losses >= max_attempts:
        message = f"the job lost its worker {losses} times: it may need more memory than there is"
        error = {"code": "worker_lost", "message": message}
        complete(session, claim, JobStatus.FAILED, error=error)
    else:
        _requeue(session, row.id, "the worker was lost", losses=losses)
    return row.id


def _tell_state(session: Session, job_id: str, status: JobStatus, **details: Any) -> None:
    events.append(session, job_id, "state", {"status": status.value, **details})


def _queue_position(session: Session, row: JobRow) -> int | None:
    if row.status != JobStatus.QUEUED:
        return None
    earlier: ColumnElement[bool] = or_(
        JobRow.queued_at < row.queued_at,
        and_(JobRow.queued_at == row.queued_at, JobRow.number < row.number),
    )
    query = select(func.count()).where(JobRow.status == JobStatus.QUEUED, earlier)
    return 1 + session.execute(query).scalar_one()


def _job(session: Session, row: JobRow) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        status=JobStatus(row.status),
        model=row.model,
        dataset=row.dataset,
        version=row.version,
        attempt=row.attempt,
        queue_position=_queue_position(session, row),
        progress=row.progress,
        metrics=row.metrics,
        error=row.error,
        request=row.request,
        spec=row.spec,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
