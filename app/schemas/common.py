"""Types that several schemas use: names, pages, problems."""

from collections.abc import Sized
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from core.names import MODEL_NAME

ModelName = Annotated[str, Field(pattern=f"^{MODEL_NAME}$", examples=["concrete"])]
DatasetId = Annotated[str, Field(pattern="^[!-~]{1,64}$", examples=["ds_6f0c"])]
JobId = Annotated[str, Field(pattern="^[!-~]{1,64}$", examples=["job_4b1d"])]
Reference = (
    Annotated[int, Field(ge=1, le=2**31 - 1)] | Annotated[str, Field(pattern=f"^{MODEL_NAME}$")]
)
Limit = Annotated[int, Field(ge=1, le=1000)]
Json = dict[str, Any]
Owner = Annotated[str | None, BeforeValidator(lambda owner: owner or None)]
"""The owner; null means everybody."""

T = TypeVar("T")


def is_none(value: object) -> bool:
    """Whether a value is None, for `Field(exclude_if=…)`."""
    return value is None


def is_empty(value: Sized) -> bool:
    """Whether a list or an object is empty, for `Field(exclude_if=…)`."""
    return not value


class Request(BaseModel):
    """A JSON body. Unknown members are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Response(BaseModel):
    """A response, made from the attributes of a record of `core`."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class PageResponse(Response, Generic[T]):
    """A page of a list. `next_cursor` is the `cursor` of the next page, null at the end."""

    data: list[T] = Field(
        description="at most `limit` items; fewer, but at least one, if they are large"
    )
    next_cursor: str | None = None


class FieldProblem(Response):
    """An error in one field of a request."""

    path: str = Field(description="JSON pointer into the body, or the name of a parameter")
    message: str


class Problem(Response):
    """`application/problem+json`, RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    request_id: str | None
    errors: list[FieldProblem] | None = Field(None, exclude_if=is_none)
