"""The service's operations on jobs: create, get, list, cancel, resume.

A job is a row of the database. A message in the queue only wakes a worker. `core.jobs.claims` has
the worker's operations, `core.jobs.transitions` the states and the statements of both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import case, select
from sqlalchemy.orm import Session, defer
from sqlalchemy.orm.attributes import set_committed_value

from core.access import audit
from core.access.callers import DATASET, JOB, MODEL, SERVICE, Caller, check_change, owner_of
from core.access.quotas import check_jobs
from core.clock import now
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, Json
from core.database.stored_bytes import stored_bytes
from core.exceptions import Conflict, Invalid, NotFound, TooLarge
from core.jobs import events, parts, turns
from core.jobs.claims import Claims
from core.jobs.events import Event
from core.jobs.specs import (
    AcquireSpec,
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
from core.paging import Page, check_limit, read_newest
from core.registry import versions

__all__ = [
    "FINAL",
    "UNFINISHED",
    "AcquireSpec",
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
MAX_SPEC_BYTES = 8 * 2**20  # of JSON: 20,000 features whose names have 256 characters
LISTED_SPEC_BYTES = 2**14  # of one job in a list


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job. `started_at` is the start of the present attempt."""

    id: str
    owner: str
    parent: str | None  # the job of which this one is a part
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
        """See `core.jobs.specs.public_request`; empty without a specification."""
        return public_request(self.kind, self.spec) if self.spec else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided about target, features and recipe when the job was submitted."""
        return tuple(self.spec.get("notes", ()))


class Jobs(Claims):
    """The table of jobs, restricted to what `caller` may see (`core.access.callers`)."""

    def __init__(self, database: Database, caller: Caller = SERVICE) -> None:
        super().__init__(database)
        self._caller = caller

    def create(self, spec: TrainSpec | EvaluateSpec | AcquireSpec, origin: Origin = NOWHERE) -> Job:
        """Queue a job. After this returns, send its id to the queue.

        Raises:
            NotFound: the data set does not exist.
            NotOwner: the job trains a model that another owner has.
            LimitReached: the caller would have more unfinished jobs than its quota.
        """
        return self._insert(_row(spec, origin))

    def create_batch(self, spec: PredictSpec, rows: int, origin: Origin = NOWHERE) -> Job:
        """Queue an offline prediction and its chunks. Then send what `queued_ids` returns.

        Args:
            rows: the number of rows of the data set.

        Raises:
            NotFound, LimitReached: as `create`.
        """
        parent = _row(spec, origin)
        parent.version = spec.version
        chunks = split(spec, parent.id, rows)
        return self._insert(parent, [_row(part, origin, parent.id) for part in chunks])

    def create_comparison(
        self, spec: CompareSpec, methods: Sequence[MethodSpec], origin: Origin = NOWHERE
    ) -> Job:
        """Queue a comparison and one training per method. Then send what `queued_ids` returns.

        Raises:
            NotFound, NotOwner, LimitReached: as `create`.
        """
        whole = _row(spec, origin)
        return self._insert(whole, [_row(part, origin, whole.id) for part in methods])

    def insert(self, session: Session, spec: TrainSpec) -> Job:
        """As `create`, in the caller's transaction."""
        return self._add(session, _row(spec, NOWHERE))

    def _insert(self, row: JobRow, pieces: Sequence[JobRow] = ()) -> Job:
        with self._database.begin() as session:
            job = self._add(session, row, pieces)
            self._caller.record(session, job.id, job)
            return job

    def _add(self, session: Session, row: JobRow, pieces: Sequence[JobRow] = ()) -> Job:
        for new in (row, *pieces):
            new.owner = self._caller.owner
        self._check(session, row)
        place = queue_end(session)
        for queued in (row, *pieces):
            queued.queued_at = place
        session.add_all([row, *pieces])
        session.flush()
        for new in (row, *pieces):
            if new.kind != "chunk":  # chunks have no events
                record_status(session, new.id, JobStatus.QUEUED)
        what = {"kind": row.kind, "model": row.model}
        audit.record(session, self._caller, "job.create", row.id, **what)
        return _jobs(session, [get_row(session, row.id)])[0]

    def _check(self, session: Session, row: JobRow) -> None:
        """Check that the caller may run this job. Lock its data sets and model name."""
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
        """Jobs without a parent, newest first.

        Those whose specification has more than `LISTED_SPEC_BYTES` come without it.

        Args:
            parent: a comparison; lists its trainings instead.
        """
        seen = self._caller.view.of(JOB)
        query = select(JobRow).where(JobRow.parent == parent, JobRow.kind != "chunk", seen)
        if status is not None:
            query = query.where(JobRow.status == _check_status(status))
        if model is not None:
            query = query.where(JobRow.model == check_model_name(model, "model"))
        with self._database.read() as session:
            page = read_newest(
                session,
                "jobs",
                query,
                JobRow.number,
                limit,
                cursor,
                self._caller.hold,
                size=stored_bytes(_RESULTS) + case((_IS_SHORT, _SPEC_BYTES), else_=0),
                options=[defer(JobRow.spec)],
            )
            _read_short_specs(session, page.data)
            return Page(_jobs(session, page.data), page.next_cursor)

    def cancel(self, job_id: str) -> Job:
        """Cancel a queued job at once. A running job is stopped by its worker.

        Raises:
            Conflict: the job has ended.
        """
        check_identifier("job", job_id)
        with self._database.begin() as session:
            row = self._lock_to_change(session, job_id, "job.cancel")
            if row.status in FINAL:
                raise Conflict(f"job {job_id} is {row.status} already: it cannot be cancelled")
            cancel_row(session, row)
            return _jobs(session, [get_row(session, job_id)])[0]

    def resume(self, job_id: str) -> Job:
        """Queue a failed or cancelled job again. It continues from its checkpoint if it has one.

        Parts that have succeeded do not run again.

        Raises:
            Conflict: the job is in another state, or its data set or model was deleted, or is no
                longer shared.
            NotOwner, LimitReached: as `create`.
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
        """Ids of jobs that workers may claim, next first; if given, only the job and its parts."""
        with self._database.read() as session:
            return turns.next_ids(session, job_id)

    def parts(self, job_id: str) -> Sequence[Job]:
        """The parts of a job in their order; empty for a job without parts."""
        query = select(JobRow).where(JobRow.parent == job_id).order_by(JobRow.number)
        with self._database.read() as session:
            return [_job(row, None) for row in session.scalars(query)]

    def events(self, job_id: str, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Events with an id greater than `after`, oldest first. Raises `NotFound`."""
        check_limit(limit, MAX_EVENTS)
        check_identifier("job", job_id)
        with self._database.read() as session:
            owner_of(session, self._caller, JOB, job_id)
            return events.read(session, job_id, after, limit)

    def _lock_to_change(self, session: Session, job_id: str, action: str) -> JobRow:
        """Lock the row of a job to cancel or resume it. Raises `Conflict` for a part."""
        check_change(session, self._caller, JOB, job_id)
        row = lock_row(session, job_id)
        if row.parent is not None:
            raise Conflict(f"job {job_id} is a part of job {row.parent}: cancel or resume that one")
        audit.record(session, self._caller, action, job_id)
        return row


def cancel_row(session: Session, row: JobRow) -> None:
    """Cancel a locked job if it is queued. A running job is stopped by its worker."""
    if row.kind in parts.PARENT_KINDS:
        parts.cancel(session, row.id)
    elif change_status(session, row.id, {JobStatus.QUEUED}, JobStatus.CANCELLED, finished_at=now()):
        record_status(session, row.id, JobStatus.CANCELLED)
    elif change_status(session, row.id, {JobStatus.RUNNING}, JobStatus.CANCELLING):
        record_status(session, row.id, JobStatus.CANCELLING)


def _datasets(row: JobRow) -> list[str]:
    """The data sets that a job reads; of a comparison also the out-of-distribution one."""
    other = row.spec.get("out_of_distribution")
    return [row.dataset] if other is None else [row.dataset, other]


def _check_status(status: str) -> JobStatus:
    try:
        return JobStatus(status)
    except ValueError:
        known = ", ".join(JobStatus)
        raise Invalid(
            [("status", f"{status[:40]!r} is not a status: give one of {known}")]
        ) from None


def _lock_dataset(session: Session, dataset: str) -> bool:
    """Prevent deletion of a data set until the transaction ends; False if it does not exist."""
    query = select(DatasetRow.id).where(DatasetRow.id == dataset).with_for_update(read=True)
    return session.scalars(query).one_or_none() is not None


def _row(spec: Spec, origin: Origin, parent: str | None = None) -> JobRow:
    document = spec.model_dump(mode="json")
    if (size := len(orjson.dumps(document))) > MAX_SPEC_BYTES:
        raise TooLarge(
            f"the request has {size} bytes with all its defaults, and one may have "
            f"{MAX_SPEC_BYTES}: leave out what the defaults say, or shorten the names of columns"
        )
    return JobRow(
        id=new_id("job"),
        parent=parent,
        kind=spec.kind,
        model=spec.model,
        dataset=check_identifier("dataset", spec.dataset),
        status=JobStatus.QUEUED,
        spec=document,
        request_id=origin.request_id,
        traceparent=origin.traceparent,
        created_at=now(),
    )


_RESULTS = JobRow.progress, JobRow.metrics, JobRow.error
_SPEC_BYTES = stored_bytes([JobRow.spec])
_IS_SHORT = _SPEC_BYTES <= LISTED_SPEC_BYTES


def _read_short_specs(session: Session, rows: Sequence[JobRow]) -> None:
    """Read the specifications that are short; those of the other rows become empty."""
    query = select(JobRow.id, JobRow.spec).where(JobRow.id.in_([row.id for row in rows]), _IS_SHORT)
    short = {row.id: row.spec for row in session.execute(query)}
    for row in rows:
        set_committed_value(row, "spec", short.get(row.id, {}))


def _jobs(session: Session, rows: Sequence[JobRow]) -> list[Job]:
    """The jobs of these rows. Queued ones have their queue position, except parts."""
    waiting = any(row.status == JobStatus.QUEUED for row in rows)
    places = turns.positions(session) if waiting else {}
    return [_job(row, places.get(row.id)) for row in rows]


def _job(row: JobRow, queue_position: int | None) -> Job:
    origin = Origin(row.request_id, row.traceparent)
    status = JobStatus(row.status)
    return row.to(Job, status=status, queue_position=queue_position, origin=origin)
