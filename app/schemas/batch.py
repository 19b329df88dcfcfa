"""Requests for offline predictions."""

from typing import Annotated

from pydantic import Field

from app.schemas.common import DatasetId
from app.schemas.predictions import VersionOptions


class BatchRequest(VersionOptions, frozen=True):
    """A model, a data set, and those options of `POST /predict` that apply to a data set."""

    dataset: DatasetId
    chunk_rows: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="rows that a worker predicts at a time; default: some seconds of work"
    )
