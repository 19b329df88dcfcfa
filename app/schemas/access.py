"""Sharing, signing in and the audit log in requests and responses."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.schemas.common import Json, Owner, Request, Response
from core.access.shares import MAX_READERS

Reader = Annotated[str, Field(min_length=1, max_length=256, examples=["forecasting-team"])]
Readers = Annotated[list[Reader], Field(alias="with", max_length=MAX_READERS)]


class SharingRequest(Request):
    """The other owners who may see an object. An empty list makes it private again."""

    readers: Readers


class SharingResponse(Response):
    """The other owners who may see an object, by name."""

    readers: Readers

    @classmethod
    def of(cls, readers: Sequence[str]) -> "SharingResponse":
        return cls.model_validate({"with": readers})


class SignInRequest(Request):
    """A key to store in a cookie."""

    key: str = Field(min_length=1, max_length=512)


class AuditResponse(Response):
    """An entry of the audit log. Entries are never changed."""

    time: datetime
    actor: str = Field(description="the name of the key, or the actor without a key")
    key: str | None = Field(description="the id of the key")
    owner: Owner
    request_id: str | None
    action: str = Field(examples=["job.create", "model.share", "key.revoke"])
    object: str = Field(examples=["job_4b1d", "concrete/champion"])
    details: Json
