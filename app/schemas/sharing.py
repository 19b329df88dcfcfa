"""Who sees what, as HTTP tells it."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from app.schemas.common import Request, Response
from core.access.shares import MAX_READERS

Reader = Annotated[str, Field(min_length=1, max_length=256, examples=["forecasting-team"])]
Readers = Annotated[list[Reader], Field(alias="with", max_length=MAX_READERS)]


class SharingRequest(Request):
    """The owners who are to see something; an empty list makes it private again."""

    readers: Readers


class SharingResponse(Response):
    """The owners who see something beside its own, by name."""

    readers: Readers

    @classmethod
    def of(cls, readers: Sequence[str]) -> "SharingResponse":
        """Under its public name."""
        return cls.model_validate({"with": list(readers)})
