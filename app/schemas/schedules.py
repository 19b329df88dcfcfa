"""Schedules and their runs in requests and responses."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from app.schemas.common import DatasetId, Json, ModelName, Owner, Request, Response, is_none
from app.schemas.training import TrainRequest
from core.jobs.specs import Reason
from core.names import MODEL_NAME
from core.schedules.schedules import UTC_NAME
from models.evaluation.gate import GateConfig

ScheduleName = Annotated[str, Field(pattern=f"^{MODEL_NAME}$", examples=["nightly"])]


class ScheduleRequest(Request):
    """A training to repeat: by `cron`, or `on` each refresh of its data set."""

    name: ScheduleName
    train: TrainRequest = Field(
        description="the body of `POST /train`; its alias is moved if the gate lets the new "
        "version pass, by default `champion`"
    )
    cron: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="minute, hour, day, month, weekday",
        examples=["0 3 * * *"],
    )
    time_zone: str = Field(
        UTC_NAME,
        min_length=1,
        max_length=64,
        description="whose clock `cron` means",
        examples=["Europe/Paris"],
    )
    on: Literal["refresh"] | None = Field(
        None, description="run when a refresh of the data set's source gives other rows"
    )
    gate: GateConfig = Field(
        GateConfig(), description="what the new version must not fall below to get the alias"
    )


class RunResponse(Response):
    """A run of a schedule."""

    number: int
    reason: Reason
    due_at: datetime
    missed: int = Field(description="due times before `due_at` that this run catches up")
    job: str | None = Field(description="the training; null if it could not be queued")
    status: str = Field(
        description="`passed` or `refused` by the gate, `unchanged` if there was nothing new to "
        "learn, `failed`; until then the status of the job"
    )
    version: int | None
    outcome: Json | None = Field(description="what the gate measured, and `reason`, a sentence")
    created_at: datetime


class ScheduleResponse(Response):
    """A schedule with its newest runs."""

    name: str
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    model: ModelName
    alias: str
    train: Json = Field(validation_alias="request", description="the training as requested")
    dataset: DatasetId = Field(description="the newest data set; a run refreshes it")
    cron: str | None
    time_zone: str
    on: Literal["refresh"] | None
    gate: GateConfig
    next_due: datetime | None = Field(description="null while it waits for a refresh")
    created_at: datetime
    runs: list[RunResponse] = Field(description="the newest ten, newest first")
