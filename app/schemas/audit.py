"""The audit log as HTTP tells it."""

from datetime import datetime

from pydantic import Field

from app.schemas.common import Json, Owner, Response


class AuditResponse(Response):
    """Something that somebody did; lines are never changed."""

    time: datetime
    actor: str = Field(description="the name of the key, or who else it was")
    key: str | None = Field(description="the id of the key")
    owner: Owner
    request_id: str | None
    action: str = Field(examples=["job.create", "model.share", "key.revoke"])
    object: str = Field(examples=["job_4b1d", "concrete/champion"])
    details: Json
