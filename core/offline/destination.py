"""Where the predictions of a job go, as a request says it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.sources.source import SecretName


class Destination(BaseModel, frozen=True):
    """A folder, here or in a bucket."""

    model_config = ConfigDict(extra="forbid")

    uri: str = Field(
        min_length=1,
        max_length=2048,
        description="a folder: file:///… or s3://bucket/…; it is empty, or a Delta table of yours",
    )
    format: Literal["parquet", "delta"] = "parquet"
    secret: SecretName | None = Field(
        None, description="the name that the operator gave to the keys of the bucket"
    )
