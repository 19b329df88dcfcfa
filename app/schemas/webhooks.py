"""Webhooks and their deliveries in requests and responses."""

from datetime import datetime
from typing import Annotated

import orjson
from pydantic import BeforeValidator, Field

from app.schemas.common import Json, Owner, Request, Response, is_none
from core.webhooks.event_types import EventType
from core.webhooks.receivers import MAX_URL

EVENTS = """What to tell of. `job.…`: a job ended. `alias.moved`: an alias names another version;
`alias.removed`: it is gone. `gate.…`: the new version of a schedule passed its gate or not.
`drift.found`: expected scores of a data set leave what training promised. `coverage.left`: labels
show that intervals, or probabilities of classes, do not hold any more; `coverage.back`: they do
again."""


class WebhookRequest(Request):
    """A receiver, and the events that it is told of."""

    url: str = Field(
        min_length=1,
        max_length=MAX_URL,
        description="as `CREDENCE_WEBHOOKS` allows",
        examples=["https://hooks.example.org/credence"],
    )
    events: list[EventType] = Field(
        min_length=1, max_length=64, description=" ".join(EVENTS.split())
    )


class WebhookResponse(Response):
    """A webhook. If it is disabled, nothing is told until it is enabled."""

    id: str
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    url: str
    events: list[EventType]
    created_at: datetime
    failing_since: datetime | None = Field(description="the first failure since the last success")
    disabled_at: datetime | None
    disabled_reason: str | None


class NewWebhookResponse(WebhookResponse):
    """A new webhook. The secret verifies its deliveries; it is not shown again."""

    secret: str = Field(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])


class Try(Response):
    """One try to send a delivery."""

    time: datetime
    response_status: int | None = Field(description="null if there was no response")
    error: str | None = Field(description="null if it was delivered")
    seconds: float


class DeliveryResponse(Response):
    """An event that a webhook is told of. `id` is that of all its tries, and of its replays."""

    id: str
    webhook: str
    event: EventType
    subject: str = Field(description="what it is about", examples=["job_4b1d", "concrete/champion"])
    status: str = Field(description="`pending`, `delivered` or `failed`")
    attempts: int
    next_attempt_at: datetime | None = Field(validation_alias="due_at")
    tries: list[Try] = Field(validation_alias="log", description="the last ones, oldest first")
    body: Annotated[Json, BeforeValidator(orjson.loads)]
    created_at: datetime
    finished_at: datetime | None
