"""Who may do what, and who did what: sharing, signing in, the audit log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.schemas.common import Json, Owner, Request, Response
from core.access.shares import MAX_READERS

Reader = Annotated[str, Field(min_length=1, max_length=256, examples=["forecasting-team"])]
Readers = Annotated[list[Reader], Field(alias="with", max_length=MAX_READERS)]


class SharingRequest(Request):
    """The owners who are to see something; an empty list makes it private again."""

    readers: Readers


class SharingResponse(Response):
    """The other owners who see something, by name."""

    readers: Readers

    @classmethod
    def of(cls, readers: Sequence[str]) -> "SharingResponse":
        return cls.model_validate({"with": readers})


class SignInRequest(Request):
    """A key, to be kept in a cookie."""

    key: str = Field(min_length=1, max_length=512)


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
