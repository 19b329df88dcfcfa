"""What a source is: files named by a URI, or a query on a database that the operator named."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Format = Literal[
    "csv",
    "tsv",
    "text",
    "parquet",
    "arrow",
    "feather",
    "orc",
    "npz",
    "excel",
    "opendocument",
    "jsonl",
    "records",
    "delta",
    "iceberg",
]
SecretName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]


class UriSource(BaseModel, frozen=True):
    """A file, files that match a pattern, all files of a folder, or a table of a lake."""

    model_config = ConfigDict(extra="forbid")

    uri: str = Field(
        min_length=1,
        max_length=2048,
        description="file:///…, s3://bucket/… or https://…; in the names of files and folders * "
        "and ? stand for other characters, ** for folders; a folder ends in /",
    )
    format: Format | None = Field(
        None, description="null: found out; delta and iceberg are tables in a folder"
    )
    secret: SecretName | None = Field(
        None, description="the name that the operator gave to the credentials"
    )


class QuerySource(BaseModel, frozen=True):
    """The result of one SELECT, which the database runs itself."""

    model_config = ConfigDict(extra="forbid")

    database: SecretName = Field(description="the name that the operator gave to the database")
    query: str = Field(min_length=1, max_length=100_000, description="one SELECT")


Source: TypeAlias = UriSource | QuerySource
