"""Jobs: the row is the truth, the message in the queue only a wake-up.

The service creates, lists, cancels and resumes them here; `core.jobs.claims` is the worker's side,
and
`core.jobs.transitions` has the states and the statements that both stand on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from core.access import audit
from core.access.callers import DATASET, JOB, MODEL, SERVICE, Caller, check_change, owner_of
from core.access.quotas import check_jobs
from core.clock import now
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, Json
from core.exceptions import Conflict, Invalid, NotFound
from core.jobs import events, parts
from core.jobs.backlog import count_jobs
from core.jobs.claims import Claims
from core.jobs.events import Event
from core.jobs.specs import (
    ChunkSpec,
    CompareSpec,
    EvaluateSpec,
    MethodSpec,
    PredictSpec,
    Spec,
    TrainSpec,
    public_request,
    split,
)
from core.jobs.transitions import (
    FINAL,
    NOWHERE,
    UNFINISHED,
    Claim,
    JobStatus,
    Origin,
    change_status,
    get_row,
    lock_row,
    queue_end,
    record_status,
    requeue,
)
from core.names import check_identifier, check_model_name, new_id
from core.paging import Page, check_limit, decode_number, page_of
from core.registry import versions

__all__ = [
    "FINAL",
    "UNFINISHED",
    "ChunkSpec",
    "Claim",
    "CompareSpec",
    "EvaluateSpec",
    "Job",
    "JobStatus",
    "Jobs",
    "MethodSpec",
    "Origin",
    "PredictSpec",
    "TrainSpec",
]

MAX_EVENTS = 10_000


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as its row says; `started_at` is that of the present attempt."""

    id: str
    owner: str
    parent: str | None  # the job that this one is a part of
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
    spec: dict[str, Any]
    origin: Origin
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def request(self) -> Json:
        """See `core.jobs.specs.public_request`."""
        return public_request(self.kind, self.spec)


class Jobs(Claims):
    """The service's side, beside the worker's; a caller sees and makes what `core.access.callers`
    says.
    """

    def __init__(self, database: Database, caller: Caller = SERVICE) -> None:
        super().__init__(database)
        self._caller = caller

    def create(self, spec: TrainSpec | EvaluateSpec, origin: Origin = NOWHERE) -> Job:
        """Queue a job; send its id to the queue after this returns.

        Raises:
            NotFound: when there is no such data set, or no more.
            NotOwner: when the model is to be trained, and its name is another's.
            LimitReached: when the caller has as many jobs as it may.
        """
        return self._insert(_row(spec, origin))

    def create_batch(self, spec: PredictSpec, rows: int, origin: Origin = NOWHERE) -> Job:
        """Queue a job and the chunks of its `rows` rows; what `queued_ids` names is to be sent.

        Raises:
            NotFound: when there is no such data set, or no more.
        """
        parent = _row(spec, origin)
        parent.version = spec.version
        chunks = split(spec, parent.id, rows)
        return self._insert(parent, [_row(part, origin, parent.id) for part in chunks])

    def create_comparison(
        self, spec: CompareSpec, methods: Sequence[MethodSpec], origin: Origin = NOWHERE
    ) -> Job:
        """Queue a job and a training for each of its methods.

        Raises:
            NotFound: when there is no such data set, or no more.
        """
        whole = _row(spec, origin)
        return self._insert(whole, [_row(part, origin, whole.id) for part in methods])

    def _insert(self, row: JobRow, pieces: Sequence[JobRow] = ()) -> Job:
        for mine in (row, *pieces):
            mine.owner = self._caller.owner
        with self._database.begin() as session:
            self._check(session, row)
            place = queue_end(session)
            for queued in (row, *pieces):
                queued.queued_at = place
            session.add_all([row, *pieces])
            session.flush()
            for told in (row, *(piece for piece in pieces if piece.kind != "chunk")):
                record_status(session, told.id, JobStatus.QUEUED)
            what = {"kind": row.kind, "model": row.model}
            audit.record(session, self._caller, "job.create", row.id, **what)
            job = _jobs(session, [get_row(session, row.id)])[0]
            self._caller.record(session, job.id, job)
            return job

    def _check(self, session: Session, row: JobRow) -> None:
        """What a job needs is there and may be used, until the transaction ends."""
        check_jobs(session, self._caller, more=1)
        for dataset in _datasets(row):
            owner_of(session, self._caller, DATASET, dataset)
            if not _lock_dataset(session, dataset):
                raise NotFound("dataset", dataset)
        if row.kind in versions.TRAINS:
            versions.reserve(session, row.model, self._caller, row.owner)
        elif not self._caller.view.sees_all:
            owner_of(session, self._caller, MODEL, row.model)

    def get(self, job_id: str) -> Job:
        """The job, or `NotFound`."""
        check_identifier("job", job_id)
        with self._database.read() as session:
            owner_of(session, self._caller, JOB, job_id)
            return _jobs(session, [get_row(session, job_id)])[0]

    def list(
        self,
        status: str | None = None,
        model: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
        parent: str | None = None,
    ) -> Page[Job]:
        """Newest first: jobs of their own, or the trainings that are parts of the job `parent`."""
        seen = self._caller.view.of(JOB)
        query = select(JobRow).where(JobRow.parent == parent, JobRow.kind != "chunk", seen)
        query = query.order_by(JobRow.number.desc()).limit(check_limit(limit) + 1)
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
            row = self._lock_to_change(session, job_id, "job.cancel")
            if row.status in FINAL:
                raise Conflict(f"job {job_id} is {row.status} already: it cannot be cancelled")
            cancel_row(session, row)
            return _jobs(session, [get_row(session, job_id)])[0]

    def resume(self, job_id: str) -> Job:
        """Queue a failed or cancelled job again; a worker goes on from its checkpoint if it can.

        Of a job in parts, those that are done stay so.

        Raises:
            Conflict: in any other state, or when the data set or model is not there any more, or
                no longer shared.
            NotOwner, LimitReached: as for a new job.
        """
        check_identifier("job", job_id)
        stopped = {JobStatus.FAILED, JobStatus.CANCELLED}
        with self._database.begin() as session:
            row = self._lock_to_change(session, job_id, "job.resume")
            if row.status not in stopped:
                raise Conflict(
                    f"job {job_id} is {row.status}: only a failed or cancelled one can be resumed"
                )
            try:
                self._check(session, row)
            except NotFound as error:
                what = "data set" if error.kind == DATASET.name else error.kind
                raise Conflict(
                    f"job {job_id} cannot be resumed: its {what} was deleted, "
                    "or is no longer shared"
                ) from error
            requeue(session, job_id, stopped, "resumed", losses=0, error=None)
            parts.restart(session, job_id)
            return _jobs(session, [get_row(session, job_id)])[0]

    def queued_ids(self, job_id: str | None = None) -> Sequence[str]:
        """What workers may claim, next one first: jobs and parts, or those of one job alone."""
        query = _queued().where(JobRow.kind.not_in(parts.PARENT_KINDS))
        if job_id is not None:
            query = query.where(or_(JobRow.id == job_id, JobRow.parent == job_id))
        with self._database.read() as session:
            return session.scalars(query).all()

    def parts(self, job_id: str) -> Sequence[Job]:
        """The parts of a job in their order; none for a job that has none."""
        query = select(JobRow).where(JobRow.parent == job_id).order_by(JobRow.number)
        with self._database.read() as session:
            return [_job(row, None) for row in session.scalars(query)]

    def counts(self) -> dict[str, int]:
        """The number of jobs in each status, zeros included; parts are no jobs of their own."""
        with self._database.read() as session:
            return count_jobs(session)

    def events(self, job_id: str, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with an id greater than `after`, oldest first; `NotFound` without such a job."""
        check_limit(limit, MAX_EVENTS)
        check_identifier("job", job_id)
        with self._database.read() as session:
            owner_of(session, self._caller, JOB, job_id)
            return events.read(session, job_id, after, limit)

    def _lock_to_change(self, session: Session, job_id: str, action: str) -> JobRow:
        """Lock a job that can be cancelled or resumed: a part goes the way of its whole."""
        check_change(session, self._caller, JOB, job_id)
        row = lock_row(session, job_id)
        if row.parent is not None:
            raise Conflict(f"job {job_id} is a part of job {row.parent}: cancel or resume that one")
        audit.record(session, self._caller, action, job_id)
        return row


def cancel_row(session: Session, row: JobRow) -> None:
    """Cancel a locked job that waits, ask the worker of one that runs to stop."""
    if row.kind in parts.PARENT_KINDS:
        parts.cancel(session, row.id)
    elif change_status(session, row.id, {JobStatus.QUEUED}, JobStatus.CANCELLED, finished_at=now()):
        record_status(session, row.id, JobStatus.CANCELLED)
    elif change_status(session, row.id, {JobStatus.RUNNING}, JobStatus.CANCELLING):
        record_status(session, row.id, JobStatus.CANCELLING)


def _datasets(row: JobRow) -> list[str]:
    """What a job reads: its rows, and of a comparison those that are unlike them."""
    other = row.spec.get("out_of_distribution")
    return [row.dataset] if other is None else [row.dataset, other]


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


def _queued() -> Select[str]:
    query = select(JobRow.id).where(JobRow.status == JobStatus.QUEUED)
    return query.order_by(JobRow.queued_at, JobRow.number)


def _row(spec: Spec, origin: Origin, parent: str | None = None) -> JobRow:
    return JobRow(
        id=new_id("job"),
        parent=parent,
        kind=spec.kind,
        model=spec.model,
        dataset=check_identifier("dataset", spec.dataset),
        status=JobStatus.QUEUED,
        spec=spec.model_dump(mode="json"),
        request_id=origin.request_id,
        traceparent=origin.traceparent,
        created_at=now(),
    )


def _jobs(session: Session, rows: Sequence[JobRow]) -> list[Job]:
    """Rows to jobs, with the positions in the queue of those that wait; parts have none."""
    waiting = any(row.status == JobStatus.QUEUED for row in rows)
    queue = session.scalars(_queued().where(JobRow.parent.is_(None))).all() if waiting else []
    positions = {job_id: place for place, job_id in enumerate(queue, start=1)}
    return [_job(row, positions.get(row.id)) for row in rows]


def _job(row: JobRow, queue_position: int | None) -> Job:
    return Job(
        id=row.id,
        owner=row.owner,
        parent=row.parent,
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
        spec=row.spec,
        origin=Origin(row.request_id, row.traceparent),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
