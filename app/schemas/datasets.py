"""Data sets in responses."""

from datetime import datetime

from pydantic import Field

from app.schemas.common import Json, Owner, Response, is_none


class ColumnResponse(Response):
    """A column. Its statistics ignore missing values."""

    name: str
    type: str = Field(description="number, category, boolean, datetime, text or tensor")
    missing: int
    shape: tuple[int, ...] | None = Field(None, exclude_if=is_none)
    min: float | None = Field(None, exclude_if=is_none)
    max: float | None = Field(None, exclude_if=is_none)
    mean: float | None = Field(None, exclude_if=is_none)
    std: float | None = Field(None, exclude_if=is_none)
    levels: tuple[str, ...] | None = Field(
        None,
        exclude_if=is_none,
        description="at most 100 levels, the most frequent first",
    )
    num_levels: int | None = Field(None, exclude_if=is_none)


class DatasetResponse(Response):
    """A data set. `bytes` and `sha256` describe the uploaded file."""

    id: str
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    name: str
    format: str
    rows: int
    columns: tuple[ColumnResponse, ...]
    bytes: int
    sha256: str
    created_at: datetime


class RowsResponse(Response):
    """The first rows, as records."""

    data: list[Json]
