"""Jobs: the row is the truth, the message in the queue only a wake-up.

The service creates, lists, cancels and resumes them here; `core.claims` is the worker's side, and
`core.transitions` has the states and the statements that both stand on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core import events
from core.claims import Claims
from core.events import Event
from core.exceptions import Conflict, Invalid, NotFound
from core.names import check_identifier, check_model_name, new_id, now
from core.paging import Page, check_limit, decode_number, page_of
from core.schema import DatasetRow, JobRow, Json
from core.specs import EvaluateSpec, JobKind, TrainSpec
from core.transitions import (
    FINAL,
    UNFINISHED,
    Claim,
    JobStatus,
    get_row,
    lock_row,
    move,
    requeue,
    tell,
)

__all__ = [
    "FINAL",
    "UNFINISHED",
    "Claim",
    "EvaluateSpec",
    "Job",
    "JobStatus",
    "Jobs",
    "TrainSpec",
]

MAX_EVENTS = 10_000


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


class Jobs(Claims):
    """The service's side, beside the worker's."""

    def create(
        self, kind: JobKind, model: str, spec: TrainSpec | EvaluateSpec, request: Json
    ) -> Job:
        """Queue a job; send its id to the queue after this returns.

        Raises:
            NotFound: when there is no such data set, or no more.
        """
        moment = now()
        row = JobRow(
            id=new_id("job"),
            kind=kind,
            model=check_model_name(model),
            dataset=check_identifier("dataset", spec.dataset),
            status=JobStatus.QUEUED,
            request=request,
            spec=spec.model_dump(mode="json"),
            created_at=moment,
            queued_at=moment,
        )
        with self._database.begin() as session:
            _require_dataset(session, spec.dataset)
            session.add(row)
            session.flush()
            tell(session, row.id, JobStatus.QUEUED)
            return _jobs(session, [get_row(session, row.id)])[0]

    def get(self, job_id: str) -> Job:
        """The job, or `NotFound`."""
        check_identifier("job", job_id)
        with self._database.read() as session:
            return _jobs(session, [get_row(session, job_id)])[0]

    def list(
        self,
        status: str | None = None,
        model: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page[Job]:
        """Newest first."""
        query = select(JobRow).order_by(JobRow.number.desc()).limit(check_limit(limit) + 1)
        if status is not None:
            query = query.where(JobRow.status == _check_status(status))
        if model is not None:
            query = query.where(JobRow.model == check_model_name(model, "model"))
        if cursor is not None:
            query = query.where(JobRow.number < decode_number("jobs", cursor))
        with self._database.read() as session:
            rows = session.scalars(query).all()
            jobs = _jobs(session, rows)
        return page_of("jobs", jobs, [row.number for row in rows], limit)

    def cancel(self, job_id: str) -> Job:
        """Cancel a queued job at once, ask the worker of a running one to stop.

        Raises:
            Conflict: when the job has ended.
        """
        check_identifier("job", job_id)
        with self._database.begin() as session:
            row = lock_row(session, job_id)
            if row.status in FINAL:
                raise Conflict(f"job {job_id} is {row.status} already: it cannot be cancelled")
            if move(session, job_id, {JobStatus.QUEUED}, JobStatus.CANCELLED, finished_at=now()):
                tell(session, job_id, JobStatus.CANCELLED)
            elif move(session, job_id, {JobStatus.RUNNING}, JobStatus.CANCELLING):
                tell(session, job_id, JobStatus.CANCELLING)
            return _jobs(session, [get_row(session, job_id)])[0]

    def resume(self, job_id: str) -> Job:
        """Queue a failed or cancelled job again; a worker goes on from its checkpoint if it can.

        Raises:
            Conflict: in any other state, or when the data set was deleted.
        """
        check_identifier("job", job_id)
        stopped = {JobStatus.FAILED, JobStatus.CANCELLED}
        with self._database.begin() as session:
            row = lock_row(session, job_id)
            if not requeue(session, job_id, stopped, "resumed", losses=0, error=None):
                raise Conflict(
                    f"job {job_id} is {row.status}: only a failed or cancelled one can be resumed"
                )
            if not _lock_dataset(session, row.dataset):
                raise Conflict(f"job {job_id} cannot be resumed: its data set was deleted")
            return _jobs(session, [get_row(session, job_id)])[0]

    def queued_ids(self) -> Sequence[str]:
        """The queued jobs, next one first."""
        with self._database.read() as session:
            return _queued_ids(session)

    def counts(self) -> dict[str, int]:
        """The number of jobs in each status, zeros included."""
        query = select(JobRow.status, func.count().label("number")).group_by(JobRow.status)
        with self._database.read() as session:
            found = {row.status: row.number for row in session.execute(query)}
        return {status.value: found.get(status.value, 0) for status in JobStatus}

    def events(self, job_id: str, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with an id greater than `after`, oldest first; `NotFound` without such a job."""
        check_limit(limit, MAX_EVENTS)
        check_identifier("job", job_id)
        with self._database.read() as session:
            get_row(session, job_id)
            return events.read(session, job_id, after, limit)


def _check_status(status: str) -> JobStatus:
    try:
        return JobStatus(status)
    except ValueError:
        known = ", ".join(JobStatus)
        raise Invalid([("status", f"{status[:40]!r} is no status: give one of {known}")]) from None


def _lock_dataset(session: Session, dataset: str) -> bool:
    """Keep the data set from being deleted until the transaction ends; False if there is none."""
    query = select(DatasetRow.id).where(DatasetRow.id == dataset).with_for_update(read=True)
    return session.scalars(query).one_or_none() is not None


def _require_dataset(session: Session, dataset: str) -> None:
    if not _lock_dataset(session, dataset):
        raise NotFound("dataset", dataset)


def _queued_ids(session: Session) -> Sequence[str]:
    query = select(JobRow.id).where(JobRow.status == JobStatus.QUEUED)
    return session.scalars(query.order_by(JobRow.queued_at, JobRow.number)).all()


def _jobs(session: Session, rows: Sequence[JobRow]) -> list[Job]:
    """Rows to jobs, with the positions in the queue of those that wait."""
    waiting = any(row.status == JobStatus.QUEUED for row in rows)
    queue = _queued_ids(session) if waiting else []
    positions = {job_id: place for place, job_id in enumerate(queue, start=1)}
    return [_job(row, positions.get(row.id)) for row in rows]


def _job(row: JobRow, queue_position: int | None) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        status=JobStatus(row.status),
        model=row.model,
        dataset=row.dataset,
        version=row.version,
        attempt=row.attempt,
        queue_position=queue_position,
        progress=row.progress,
        metrics=row.metrics,
        error=row.error,
        request=row.request,
        spec=row.spec,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
