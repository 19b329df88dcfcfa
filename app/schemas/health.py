"""Responses of health checks."""

from typing import Literal

from pydantic import Field

from app.schemas.common import Response


class LiveResponse(Response):
    """The process responds. There is no other status."""

    status: Literal["alive"] = "alive"


class ReadyResponse(Response):
    """`ok` or the error of each service. The engine may also be `busy`."""

    status: Literal["ready"] = "ready"
    engine: str
    database: str = Field(description="needed for all but predictions from loaded models")
    broker: str = Field(description="needed to wake workers; without it, jobs start later")
    artifact_store: str = Field(description="needed to store data sets and to load models")
