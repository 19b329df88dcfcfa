"""Jobs and events in responses."""

from datetime import datetime

from pydantic import ConfigDict, Field, model_validator

from app.schemas.common import Json, Owner, Response, is_none
from core.jobs.events import Event
from core.jobs.jobs import JobStatus


class Progress(Response):
    """The progress of a job.

    A training counts epochs, an offline prediction finished chunks and their rows (of a forecaster
    series), a comparison finished methods.
    """

    model_config = ConfigDict(extra="allow")
    epoch: int | None = Field(None, exclude_if=is_none)
    epochs: int | None = Field(None, exclude_if=is_none)
    chunk: int | None = Field(None, exclude_if=is_none)
    chunks: int | None = Field(None, exclude_if=is_none)
    row: int | None = Field(None, exclude_if=is_none)
    rows: int | None = Field(None, exclude_if=is_none)
    method: int | None = Field(None, exclude_if=is_none)
    methods: int | None = Field(None, exclude_if=is_none)
    fraction: float
    eta_seconds: float | None


class JobError(Response):
    """Why a job failed: a code for programs, a message for people."""

    code: str
    message: str


class JobResponse(Response):
    """A job. `request` is the request with all defaults filled in."""

    id: str
    parent: str | None = Field(
        None, exclude_if=is_none, description="the comparison that this training is a part of"
    )
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    kind: str
    status: JobStatus
    model: str
    version: int | None
    attempt: int
    queue_position: int | None = Field(
        description="1 is next, owners take turns; null unless the job is queued"
    )
    progress: Progress | None
    metrics: Json
    error: JobError | None
    request: Json = Field(
        description="lists leave out requests and notes of jobs that have more than 16 kB of them"
    )
    notes: tuple[str, ...] = Field(
        description="of a training: what was decided about target, features and recipe"
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class EventResponse(Response):
    """An event of a job. Other members depend on `type`."""

    model_config = ConfigDict(extra="allow")
    id: int
    type: str
    time: datetime

    @model_validator(mode="before")
    @classmethod
    def _join(cls, event: object) -> object:
        if not isinstance(event, Event):
            return event
        return event.data | {"id": event.id, "type": event.type, "time": event.time}
