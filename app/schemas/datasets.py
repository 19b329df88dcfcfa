"""Data sets in responses."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from app.schemas.common import Json, Owner, Request, Response, is_empty, is_none
from core.datasets.dataset import Dataset
from core.datasets.files.options import DatasetOptions
from core.datasets.findings.advice import advised
from core.datasets.findings.finding import Code, Severity
from core.datasets.understanding.fixes import ColumnFix
from core.sources.source import QuerySource, UriSource

DatasetName = Annotated[str, Field(min_length=1, max_length=256)]


class ColumnsRequest(Request):
    """What to read otherwise: columns, the file, or both. All else is read as before."""

    columns: Annotated[tuple[ColumnFix, ...], Field(max_length=1_000)] = ()
    options: DatasetOptions = Field(
        DatasetOptions(),
        description="how to read the file, as the parameters of the upload; "
        "null keeps what was found out or said before",
    )
    name: DatasetName | None = Field(None, description="default: that of the data set")

    @model_validator(mode="after")
    def _says_something(self) -> "ColumnsRequest":
        if not self.columns and self.options == DatasetOptions():
            raise ValueError("give columns, options, or both")
        return self


def _kind_of_source(source: Any) -> str:
    """A tag, which no field has as its name, so that pointers of errors lack it."""
    given = source if isinstance(source, dict) else getattr(source, "__dict__", {})
    return "rows" if {"database", "query"} & given.keys() else "files"


AnySource = Annotated[
    Annotated[UriSource, Tag("files")] | Annotated[QuerySource, Tag("rows")],
    Discriminator(_kind_of_source),
]


class SourceRequest(Request):
    """What to read into a new data set: files or a table by URI, or a query on a database."""

    name: DatasetName
    source: AnySource
    options: DatasetOptions = Field(
        DatasetOptions(),
        description="how to read a file, as the parameters of the upload",
    )


class SourceFileResponse(Response):
    """A file of a source."""

    path: str = Field(description="on its host, in its bucket, or of the service's machine")
    bytes: int | None
    tag: str | None = Field(description="its ETag, or the time of its last change")


class SnapshotResponse(Response):
    """What was read of a source."""

    read_at: datetime
    format: str | None = Field(description="of the files, or of the table or database")
    version: int | None = Field(None, exclude_if=is_none, description="of a Delta table")
    snapshot_id: str | None = Field(None, exclude_if=is_none, description="of an Iceberg table")
    num_files: int | None = Field(None, exclude_if=is_none)
    bytes: int | None = Field(None, exclude_if=is_none, description="of all files together")
    rows: int | None = Field(None, exclude_if=is_none, description="of a query's result")
    files: tuple[SourceFileResponse, ...] | None = Field(
        None, exclude_if=is_none, description="the first 100 files"
    )


class SourceResponse(Response):
    """Where a data set was read from, as it was asked for, and what was read."""

    uri: str | None = Field(None, exclude_if=is_none)
    format: str | None = Field(None, exclude_if=is_none)
    secret: str | None = Field(None, exclude_if=is_none, description="its name")
    database: str | None = Field(None, exclude_if=is_none, description="its name")
    query: str | None = Field(None, exclude_if=is_none)
    snapshot: SnapshotResponse


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
    use: bool = Field(
        True, description="whether it is a feature unless a training names its features"
    )
    reading: "ColumnReadingResponse | None" = Field(
        None, exclude_if=is_none, description="how its texts were read"
    )


class ColumnReadingResponse(Response):
    """How the texts of a column were read, in the terms of `POST /datasets/{id}/columns`."""

    format: str | None = Field(
        description="as the file writes 1234.56; a time's order in the signs of strptime; the "
        "words of true and false; exact: blanks and case count; null: the plain form"
    )
    missing: tuple[str, ...] = Field(description="texts that stand for a missing value")
    levels: dict[str, str] = Field(
        {},
        exclude_if=is_empty,
        description="levels that are read as another one; absent: none",
    )


class ReadingResponse(Response):
    """How the file was read; what its format does not have is absent."""

    packing: str | None = Field(None, exclude_if=is_none)
    member: str | None = Field(None, exclude_if=is_none)
    encoding: str | None = Field(None, exclude_if=is_none)
    delimiter: str | None = Field(None, exclude_if=is_none)
    quote: str | None = Field(None, exclude_if=is_none)
    decimal: str | None = Field(None, exclude_if=is_none)
    header: bool | None = Field(None, exclude_if=is_none)
    skip: int | None = Field(None, exclude_if=is_none)
    comment: str | None = Field(None, exclude_if=is_none)
    index: bool | None = Field(None, exclude_if=is_none)
    sheet: str | None = Field(None, exclude_if=is_none)
    repeated_rows: int | None = Field(
        None,
        exclude_if=is_none,
        description="the number of rows that were left out because they equal an earlier one, with "
        "the option `unique_rows`; absent: such rows stay",
    )


class ExampleResponse(Response):
    """A cell that a finding is about."""

    line: int | None = Field(description="in the file, counting from 1")
    value: str


class FindingResponse(Response):
    """Something about the file or a column that you should know before a training."""

    code: Code
    column: str | None = Field(description="null: the file as a whole")
    severity: Severity = Field(
        description="info: understood as most would mean it; warning: a guess; error: a training "
        "would go wrong"
    )
    message: str
    rows: int = Field(description="the number of rows that it concerns")
    examples: tuple[ExampleResponse, ...]
    fix: dict[str, Any] | None = Field(
        description="a body for `POST /datasets/{id}/columns`: it fixes what was found, or undoes "
        "a guess"
    )
    advised: bool = Field(
        False,
        description="whether the fix improves the table and fits the other advised fixes: all of "
        "them can be applied together",
    )


class DatasetResponse(Response):
    """A data set. `bytes` and `sha256` describe the file that was uploaded or read."""

    id: str
    owner: Owner = Field(
        None, exclude_if=is_none, description="the owner, unless it belongs to everybody"
    )
    name: str
    format: str
    rows: int
    columns: tuple[ColumnResponse, ...] = Field(
        description="lists leave out columns and findings of data sets with more than 100 columns"
    )
    num_columns: int
    bytes: int
    sha256: str
    created_at: datetime
    reading: ReadingResponse = Field(description="how the file was read")
    findings: tuple[FindingResponse, ...]
    source: SourceResponse | None = Field(
        None, description="where it was read from; null: it was uploaded"
    )
    refreshed_from: str | None = Field(
        None, exclude_if=is_none, description="the data set whose source was read again"
    )

    @model_validator(mode="wrap")
    @classmethod
    def _with_readings(cls, dataset: Any, handler: Any) -> "DatasetResponse":
        """Put the reading of each column beside its statistics, and advice beside findings."""
        made: DatasetResponse = handler(dataset)
        if not isinstance(dataset, Dataset):
            return made
        findings = tuple(
            finding.model_copy(update={"advised": is_advised})
            for finding, is_advised in zip(made.findings, advised(dataset.findings), strict=True)
        )
        readings = [ColumnReadingResponse.model_validate(one) for one in dataset.readings]
        columns = tuple(
            column.model_copy(update={"reading": reading})
            for column, reading in zip(made.columns, readings, strict=False)
        )
        columns = (*columns, *made.columns[len(columns) :])
        return made.model_copy(update={"columns": columns, "findings": findings})


class RowsResponse(Response):
    """The first rows, as records. `next_cursor` is the `cursor` of the next ones."""

    data: list[Json] = Field(
        description="at most `limit` rows; fewer, but at least one, if they are large. Of a text "
        "of more than 1,048,576 characters, divided by the number of columns of texts, the first "
        "ones are shown, and the number of its bytes. Categories are never cut"
    )
    next_cursor: str | None = Field(None, description="null: there are no more rows")
