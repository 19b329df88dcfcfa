"""Responses of health checks."""

from typing import Literal

from pydantic import Field

from app.schemas.common import Response


class LiveResponse(Response):
    """The process answers; there is no other response."""

    status: Literal["alive"] = "alive"


class ReadyResponse(Response):
    """`ok`, or what is wrong, for each part; the engine may be `busy` as well."""

    status: Literal["ready"] = "ready"
    engine: str
    database: str = Field(description="needed for everything but predictions from loaded models")
    broker: str = Field(description="needed to wake workers; jobs wait meanwhile")
    artifact_store: str = Field(description="needed to store data sets and to load models")
