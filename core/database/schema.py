"""The tables. Memory and queue hold only copies of their rows, or identifiers of rows."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Json = dict[str, Any]
Record = TypeVar("Record")


class UtcDateTime(TypeDecorator[datetime]):
    """A time, stored and returned in UTC, because SQLite does not keep time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone: use an aware datetime in UTC")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


BigId = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only INTEGER keys
Name = String(256)
Owner = Annotated[str, mapped_column(Name, default="", server_default="")]
"""The owner (see `core.access.callers`); "" is everybody."""


class Base(DeclarativeBase):
    """Tables whose constraints have names, so that migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcDateTime, Json: JSON, list[Json]: JSON}  # noqa: RUF012

    def to(self, record: type[Record], **others: Any) -> Record:
        """A dataclass with this row's columns of the same names, and with `others`."""
        names = {field.name for field in fields(record)} - others.keys()  # type: ignore[arg-type]
        return record(**{name: getattr(self, name) for name in names}, **others)


class DatasetRow(Base):
    """An ingested data set; `number` orders the list.

    `variant` is a digest of what the caller said about file and columns; "" in the first release.
    `source_key` is the uploaded file, which data sets of the same bytes share.
    """

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("owner", "sha256", "format", "variant"),)
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    owner: Mapped[Owner]
    name: Mapped[str] = mapped_column(Name)
    format: Mapped[str] = mapped_column(String(16))
    rows: Mapped[int] = mapped_column(BigInteger)
    columns: Mapped[list[Json]]
    bytes: Mapped[int] = mapped_column(BigInteger)
    stored_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    sha256: Mapped[str] = mapped_column(String(64))
    artifact_key: Mapped[str] = mapped_column(String(512))
    created_at: Mapped[datetime]
    variant: Mapped[str] = mapped_column(String(64), default="", server_default="")
    source_key: Mapped[str | None] = mapped_column(String(512), index=True)
    about: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))


class JobRow(Base):
    """A job, or a part of the job `parent` (see `core.jobs.parts`).

    `attempt` fences: it grows with every claim, and writers must know its value.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_status_queued_at", "status", "queued_at"),
        Index("ix_jobs_parent_status", "parent", "status"),  # counted at every scrape
        Index("ix_jobs_owner_status", "owner", "status"),  # counted for each new job of a key
    )
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    parent: Mapped[str | None] = mapped_column(String(64))
    owner: Mapped[Owner]
    kind: Mapped[str] = mapped_column(String(16))
    model: Mapped[str] = mapped_column(String(64), index=True)
    dataset: Mapped[str] = mapped_column(String(64), index=True)
    status: Mapped[str] = mapped_column(String(16))
    attempt: Mapped[int] = mapped_column(default=0)
    losses: Mapped[int] = mapped_column(default=0)  # workers that vanished, since the last resume
    worker: Mapped[str | None] = mapped_column(Name)
    lease_until: Mapped[datetime | None]
    version: Mapped[int | None]
    progress: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    metrics: Mapped[Json] = mapped_column(default=dict)
    error: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    spec: Mapped[Json]
    request_id: Mapped[str | None] = mapped_column(String(128))  # of the request that created it
    traceparent: Mapped[str | None] = mapped_column(String(64))  # W3C's, if that was traced
    last_event: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    queued_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class EventRow(Base):
    """An event of a job; `id` counts up from 1 within the job, without a gap."""

    __tablename__ = "events"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    type: Mapped[str] = mapped_column(String(16))
    time: Mapped[datetime]
    data: Mapped[Json]


class ModelRow(Base):
    """A model's name, stored when the first job that trains it is created.

    The row stays when all versions are deleted, so that no version number is used twice.
    """

    __tablename__ = "models"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    owner: Mapped[Owner]
    last_version: Mapped[int]


class VersionRow(Base):
    """An immutable model version and where its artifact is."""

    __tablename__ = "versions"
    model: Mapped[str] = mapped_column(ForeignKey("models.name"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    description: Mapped[Json]
    dataset: Mapped[str] = mapped_column(String(64))
    job: Mapped[str] = mapped_column(String(64))
    artifact_key: Mapped[str] = mapped_column(String(512), unique=True)
    created_at: Mapped[datetime]


class AliasRow(Base):
    """A movable name of a version."""

    __tablename__ = "aliases"
    __table_args__ = (
        ForeignKeyConstraint(["model", "version"], ["versions.model", "versions.version"]),
    )
    model: Mapped[str] = mapped_column(String(64), primary_key=True)
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int]


def _of_version() -> ForeignKeyConstraint:
    """A reference to a version; the row is deleted with the version."""
    columns = ["versions.model", "versions.version"]
    return ForeignKeyConstraint(["model", "version"], columns, ondelete="CASCADE")


class PredictionRow(Base):
    """A stored request for a prediction, from which it can be computed again."""

    __tablename__ = "predictions"
    __table_args__ = (
        _of_version(),
        Index("ix_predictions_model", "model", "version"),
        Index("ix_predictions_owner", "owner", "key", "bytes"),  # sums read the index only
    )
    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    owner: Mapped[Owner]
    model: Mapped[str] = mapped_column(String(64))
    version: Mapped[int]
    options: Mapped[Json]
    rows: Mapped[int]
    inputs: Mapped[bytes] = mapped_column(LargeBinary)  # see `core.datasets.columns.packing`
    future: Mapped[bytes | None] = mapped_column(LargeBinary)
    key: Mapped[str] = mapped_column(String(64), default="", server_default="")  # the caller's
    bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    created_at: Mapped[datetime] = mapped_column(index=True)


class FeedbackRow(Base):
    """The scores of rows for which labels were sent; `number` orders the window.

    `predicted_at` is None for rows whose labels came with their inputs, and of the first release.
    """

    __tablename__ = "feedback"
    __table_args__ = (_of_version(), Index("ix_feedback_model", "model", "version"))
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    model: Mapped[str] = mapped_column(String(64))
    version: Mapped[int]
    prediction: Mapped[str | None] = mapped_column(String(64), unique=True)
    rows: Mapped[int]
    scores: Mapped[Json]
    created_at: Mapped[datetime]
    predicted_at: Mapped[datetime | None]


class FeedbackWindowRow(Base):
    """The metrics of a version's newest labelled rows; locked while they change.

    `labels` are those that adaptive intervals follow (`core.predictions.adaptation`).
    """

    __tablename__ = "feedback_windows"
    __table_args__ = (_of_version(),)
    model: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    metrics: Mapped[Json]
    updated_at: Mapped[datetime] = mapped_column(index=True)
    labels: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))


class KeyRow(Base):
    """A caller's key, of which only the SHA-256 is stored. A revoked key keeps its row."""

    __tablename__ = "keys"
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(Name)
    scope: Mapped[str] = mapped_column(String(16))
    owner: Mapped[Owner]
    max_requests_per_minute: Mapped[int | None]
    max_stored_bytes: Mapped[int | None] = mapped_column(BigInteger)
    max_queued_jobs: Mapped[int | None]
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class WorkerRow(Base):
    """A worker process and the time of its last heartbeat."""

    __tablename__ = "workers"
    id: Mapped[str] = mapped_column(Name, primary_key=True)
    device: Mapped[str] = mapped_column(Name)
    started_at: Mapped[datetime]
    heartbeat_at: Mapped[datetime]


class InstallationRow(Base):
    """One row with this database's identifier; see `core.database.statements`."""

    __tablename__ = "installation"
    only: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    id: Mapped[str] = mapped_column(String(12))


class ScheduleRow(Base):
    """A training that is repeated. `next_due` alone decides whether a run is due.

    `spec` is the `TrainSpec` of the next run. `variant` is that of `dataset` and of all data sets
    that a refresh makes of it; "" if it was uploaded. `actor` and `key` are of the request.
    """

    __tablename__ = "schedules"
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    owner: Mapped[Owner]
    actor: Mapped[str] = mapped_column(Name)
    key: Mapped[str | None] = mapped_column(String(64))
    request: Mapped[Json]
    spec: Mapped[Json]
    gate: Mapped[Json]
    dataset: Mapped[str] = mapped_column(String(64))
    variant: Mapped[str] = mapped_column(String(64), index=True)
    cron: Mapped[str | None] = mapped_column(String(128))
    time_zone: Mapped[str] = mapped_column(String(64))
    next_due: Mapped[datetime | None] = mapped_column(index=True)
    created_at: Mapped[datetime]


class ScheduleRunRow(Base):
    """A run of a schedule. While it has no `outcome`, the state of its job says how far it is.

    `missed` counts the due times before `due_at` that this run catches up.
    """

    __tablename__ = "schedule_runs"
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    schedule: Mapped[int] = mapped_column(
        ForeignKey("schedules.number", ondelete="CASCADE"), index=True
    )
    reason: Mapped[str] = mapped_column(String(16))
    due_at: Mapped[datetime]
    missed: Mapped[int] = mapped_column(default=0, server_default="0")
    job: Mapped[str | None] = mapped_column(String(64), index=True)
    outcome: Mapped[Json | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class ShareRow(Base):
    """A data set, job or model that `reader` may see; "*" is everybody."""

    __tablename__ = "shares"
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    object: Mapped[str] = mapped_column(String(64), primary_key=True)
    reader: Mapped[str] = mapped_column(Name, primary_key=True)


class AuditRow(Base):
    """A line of the audit log, written in the transaction that makes the change."""

    __tablename__ = "audit"
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    time: Mapped[datetime] = mapped_column(index=True)
    actor: Mapped[str] = mapped_column(Name)
    key: Mapped[str | None] = mapped_column(String(64))
    owner: Mapped[Owner]
    request_id: Mapped[str | None] = mapped_column(String(128))
    action: Mapped[str] = mapped_column(String(32))
    object: Mapped[str] = mapped_column(Name)
    details: Mapped[Json]


class ReplyRow(Base):
    """The reply to a request with an Idempotency-Key, and the id of what the request created.

    `body` is empty if the reply can be computed again from the request.
    """

    __tablename__ = "replies"
    caller: Mapped[str] = mapped_column(String(64), primary_key=True)
    route: Mapped[str] = mapped_column(Name, primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    resource: Mapped[str] = mapped_column(String(64))
    status: Mapped[int]
    headers: Mapped[Json]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(index=True)


class WebhookRow(Base):
    """A receiver of its owner's events. `secret` signs, so it is stored as it is.

    `failing_since` is the first failure since the last success.
    """

    __tablename__ = "webhooks"
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    owner: Mapped[Owner] = mapped_column(index=True)
    url: Mapped[str] = mapped_column(String(2048))
    events: Mapped[list[str]] = mapped_column(JSON)
    secret: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    failing_since: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None] = mapped_column(String(512))


class DeliveryRow(Base):
    """An event that a webhook is told of, written in the transaction in which it happens.

    `attempts` fences, as that of a job: it grows with every claim. `tries` are those since the
    start, or since a replay. `due_at` is the next try; a claim moves it to the end of its lease.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("ix_webhook_deliveries_status_due_at", "status", "due_at"),
        Index("ix_webhook_deliveries_webhook", "webhook", "number"),
    )
    number: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    webhook: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(Name)
    body: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(default=0)
    tries: Mapped[int] = mapped_column(default=0)
    log: Mapped[list[Json]] = mapped_column(default=list)
    created_at: Mapped[datetime] = mapped_column(index=True)
    due_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
