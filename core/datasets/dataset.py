"""A data set's record, as its row in the database stores it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from core.database.schema import DatasetRow, Json
from core.datasets.files.ingest import Given, Ingested
from core.datasets.files.options import DatasetOptions, Reading, ReadingOptions
from core.datasets.findings.finding import Finding
from core.datasets.understanding import fixes
from models.features.columns import ColumnProfile, ColumnReading


@dataclass(frozen=True)
class Provenance:
    """Where a data set was read from (see `core.sources`).

    Args:
        source: the request: a URI, or a database's name and a query.
        snapshot: what was read, and when: files with their tags, or the version of a table.
        refreshed_from: the data set that was refreshed.
    """

    source: Json
    snapshot: Json
    refreshed_from: str | None = None


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set without its rows. `bytes` and `sha256` describe the uploaded file.

    Args:
        reading: how the file was read.
        readings: how each column was read, in the order of the columns; empty for data sets of
            the first release.
        given: what the caller said about file and columns.
        provenance: where it was read from; None of an upload.
        num_columns: the number of columns; lists leave out the columns of wide data sets.
        first_line: the line of the first row in the file, if each row is one line; else None.
    """

    id: str
    owner: str
    name: str
    format: str
    rows: int
    columns: tuple[ColumnProfile, ...]
    bytes: int
    sha256: str
    created_at: datetime
    reading: Reading = field(default_factory=Reading)
    readings: tuple[ColumnReading, ...] = ()
    findings: tuple[Finding, ...] = ()
    given: Given = field(default_factory=Given)
    provenance: Provenance | None = None
    num_columns: int = 0
    first_line: int | None = None

    @property
    def source(self) -> Json | None:
        """The request that it was read by, with the `snapshot` that was read."""
        if self.provenance is None:
            return None
        return self.provenance.source | {"snapshot": self.provenance.snapshot}

    @property
    def refreshed_from(self) -> str | None:
        """The data set that was refreshed."""
        return None if self.provenance is None else self.provenance.refreshed_from


def dataset_of(row: DatasetRow) -> Dataset:
    """The record of a row."""
    return _record(row, row.columns, row.about or {}, len(row.columns))


def brief(row: DatasetRow, num_columns: int) -> Dataset:
    """The record of a row without columns and findings, which are not read from the database."""
    return _record(row, [], {}, num_columns)


def _record(row: DatasetRow, columns: Sequence[Json], about: Json, num_columns: int) -> Dataset:
    return row.to(
        Dataset,
        columns=tuple(map(profile_of, columns)),
        num_columns=num_columns,
        reading=Reading(**about.get("reading", {})),
        readings=tuple(map(column_reading_of, about.get("readings", ()))),
        findings=tuple(map(Finding.from_json, about.get("findings", ()))),
        given=Given(
            DatasetOptions(**about.get("options", {})), fixes.from_json(about.get("fixes", ()))
        ),
        provenance=Provenance(**about["provenance"]) if "provenance" in about else None,
        first_line=about.get("first_line"),
    )


def about_of(found: Ingested, given: Given, provenance: Provenance | None = None) -> Json:
    """What a row stores about the reading, in JSON."""
    origin = {} if provenance is None else {"provenance": dict(vars(provenance))}
    return origin | {
        "reading": given_fields(found.reading),
        "readings": [reading.to_json() for reading in found.readings],
        "findings": [finding.to_json() for finding in found.findings],
        "options": given_fields(given.options),
        "fixes": fixes.to_json(given.fixes),
        "first_line": found.first_line,
    }


def given_fields(options: ReadingOptions) -> Json:
    """The options that are not None."""
    values = {one.name: getattr(options, one.name) for one in fields(options)}
    return {name: value for name, value in values.items() if value is not None}


def profile_of(data: Mapping[str, Any]) -> ColumnProfile:
    """The profile of a column, from JSON."""
    use = data.get("use", data["type"] != "text")  # the first release left texts out
    lists = {key: tuple(data[key]) for key in ("shape", "levels") if data[key] is not None}
    return ColumnProfile(**{**data, **lists, "use": use})


def column_reading_of(data: Mapping[str, Any]) -> ColumnReading:
    """How a column was read, from JSON."""
    return ColumnReading(**{**data, "missing": tuple(data["missing"])})
