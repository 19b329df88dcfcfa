"""Rows in files of several formats, as columns of a model's features.

csv      with a header; an empty cell is a missing value
jsonl    an object per line
arrow    a stream
parquet  needs pyarrow
text     a line per row, for language models
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from io import TextIOWrapper
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import typer

from credence.rendering import note
from credence.types import Feature

if TYPE_CHECKING:
    from credence.client.arrow import Column, Kind

RowFormat = Literal["csv", "jsonl", "parquet", "arrow", "text"]
SUFFIXES: dict[str, RowFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".txt": "text",
}
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
STANDARD_INPUT = Path("-")
ROWS_PER_READ = 10_000  # with 100 samples each they are one request of the client

Columns = dict[str, "Column"]
Batches = Iterator[tuple[list[str], list[Sequence[Any]]]]  # names, and a sequence per row
Parse = Callable[[Any, str], Any]


class BadRows(ValueError):
    """Rows that cannot be read as the model's features; the message says where and why."""


@dataclass(frozen=True)
class Rows:
    """Batches of rows, read when they are needed; `ignored` are columns that are not features."""

    batches: Iterator[Columns]
    ignored: tuple[str, ...]

    def all(self) -> Columns:
        """All rows as one batch."""
        first, *rest = self.batches
        for batch in rest:
            for name, column in batch.items():
                first[name].values.extend(column.values)  # type: ignore[attr-defined]
        return first


def existing(file: Path | None) -> Path | None:
    """The file; `typer.BadParameter` if it does not exist."""
    if file is not None and file != STANDARD_INPUT and not file.is_file():
        raise typer.BadParameter(f"there is no file {str(file)!r}")
    return file


@contextmanager
def rows_of(
    file: Path, features: Sequence[Feature], format_: RowFormat | None = None
) -> Iterator[Rows]:
    """The rows of a file or of standard input, by default CSV or, for texts, one per line.

    Rows that cannot be read within the block end the command with a message.
    """
    is_language = [(f["name"], f["type"]) for f in features] == [("text", "text")]
    piped: RowFormat = "text" if is_language else "csv"
    try:
        if file == STANDARD_INPUT and sys.stdin.isatty():
            raise BadRows("no rows: give a FILE, or pipe rows in")
        known = format_ or (piped if file == STANDARD_INPUT else format_of(file))
        source = sys.stdin.buffer if file == STANDARD_INPUT else file
        with open_rows(source, known, features) as rows:
            if rows.ignored:
                note(f"not features, ignored: {', '.join(rows.ignored)}")
            yield rows
    except (BadRows, csv.Error, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint=str(file)) from None


def format_of(file: Path) -> RowFormat:
    """The format that a file's suffix stands for.

    Raises:
        BadRows: for any other suffix.
    """
    if file.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise BadRows(f"suffix {file.suffix!r} is none of {known}; --from sets the format")
    return SUFFIXES[file.suffix.lower()]


@contextmanager
def open_rows(
    source: Path | IO[bytes], format_: RowFormat, features: Sequence[Feature]
) -> Iterator[Rows]:
    """The rows of a file.

    Raises:
        BadRows: the rows are not in this format, or a feature has no column. Reading a later
            batch raises it, too.
    """
    with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
        if format_ == "arrow":
            yield _select(_arrow(file), _parse_value, features, "no rows in it")
        elif format_ == "parquet":
            yield _select(_parquet(file), _parse_value, features, "no rows in it")
        else:
            lines = TextIOWrapper(
                file, newline="", encoding="utf-8-sig"
            )  # with or without a byte-order mark
            try:
                yield read_lines(lines, format_, features)
            finally:
                lines.detach()  # the file stays open


def read_lines(
    lines: Iterable[str], format_: Literal["csv", "jsonl", "text"], features: Sequence[Feature]
) -> Rows:
    """The rows of a text file; raises as `open_rows`."""
    match format_:
        case "csv":
            return _select(_csv(lines), parse_cell, features, "no rows below the header")
        case "jsonl":
            return _select(_json_lines(lines, features), _parse_value, features, "")
        case "text":
            texts = ([line.rstrip("\r\n")] for line in lines)
            return _select(_batches(["text"], texts), _parse_value, features, "no rows in it")


def _batches(names: list[str], rows: Iterable[Sequence[Any]]) -> Batches:
    rows = iter(rows)
    while batch := list(islice(rows, ROWS_PER_READ)):
        yield names, batch


def _csv(lines: Iterable[str]) -> Batches:
    table = csv.reader(lines)
    header = next(table, None)
    if header is None:
        raise BadRows("no rows: the first line must name the columns")

    def rows() -> Iterator[list[str]]:
        for number, cells in enumerate(table, start=1):
            if cells and len(cells) != len(header):
                raise BadRows(f"row {number}: {len(cells)} cells, but the header has {len(header)}")
            if cells:  # an empty line is no row
                yield cells

    return chain([(header, [])], _batches(header, rows()))


def _json_lines(lines: Iterable[str], features: Sequence[Feature]) -> Batches:
    def records() -> Iterator[dict[str, Any]]:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise BadRows(f"row {number}: not JSON: {error}") from None
            if not isinstance(record, dict):
                raise BadRows(f"row {number}: {type(record).__name__} is no object with columns")
            yield record

    rest = records()
    if (first := next(rest, None)) is None:
        raise BadRows("no rows: write an object per line")
    names = list(first)
    _check(names, features)

    def rows() -> Iterator[list[Any]]:
        for number, record in enumerate(chain([first], rest), start=1):
            for feature in features:
                if feature["name"] not in record:
                    raise BadRows(f"row {number}: no column {feature['name']!r}")
            yield [record.get(name) for name in names]

    return _batches(names, rows())


def _arrow(file: IO[bytes]) -> Batches:
    import nanoarrow as na  # noqa: PLC0415

    try:
        stream = na.ArrayStream.from_readable(file)
        names = [field.name for field in stream.schema.fields]
    except RuntimeError as error:
        raise BadRows(f"not a file of the format arrow: {error}") from None
    return chain([(names, [])], ((names, list(batch.iter_tuples())) for batch in stream))


def _parquet(file: IO[bytes]) -> Batches:
    try:
        import pyarrow as pa  # noqa: PLC0415 - 170 MB, for this format alone
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise BadRows("Parquet needs one more package: pip install pyarrow") from None
    try:
        table: Any = parquet.ParquetFile(pa.BufferReader(file.read()))
    except pa.ArrowException as error:
        raise BadRows(f"not a file of the format parquet: {error}") from None
    names = table.schema_arrow.names
    batches = (zip(*batch.to_pydict().values(), strict=True) for batch in table.iter_batches())
    return chain([(names, [])], ((names, list(rows)) for rows in batches))


def _check(names: Sequence[str], features: Sequence[Feature]) -> None:
    """Raise `BadRows` if a feature has no column, or is a tensor."""
    for feature in features:
        if feature["type"] == "tensor":
            raise BadRows(f"{feature['name']} is a tensor: predict such rows from Python (Client)")
        if feature["name"] not in names:
            raise BadRows(f"no column {feature['name']!r}: there are {', '.join(names)}")


def _select(batches: Batches, parse: Parse, features: Sequence[Feature], empty: str) -> Rows:
    """Only the features, in their types; `BadRows(empty)` if there are no rows."""
    first = next(batches, ([feature["name"] for feature in features], []))
    _check(first[0], features)
    filled = ((names, rows) for names, rows in chain([first], batches) if rows)
    start = next(filled, None)
    if start is None:
        raise BadRows(empty)
    wanted = {feature["name"] for feature in features}
    ignored = tuple(name for name in first[0] if name not in wanted)
    return Rows(_columns(chain([start], filled), parse, features), ignored)


def _columns(batches: Batches, parse: Parse, features: Sequence[Feature]) -> Iterator[Columns]:
    from credence.client.arrow import Column  # noqa: PLC0415 - loads httpx: slow

    number = 1
    for names, rows in batches:
        columns: Columns = {}
        for name, type_ in ((feature["name"], feature["type"]) for feature in features):
            place, values = names.index(name), list[Any]()
            try:
                values.extend(parse(row[place], type_) for row in rows)
            except ValueError as error:
                where = f"row {number + len(values)}, column {name!r}"
                raise BadRows(f"{where}: {error}") from None
            kind: Kind = type_ if type_ in ("number", "boolean") else "text"  # type: ignore[assignment]
            columns[name] = Column(kind, values)
        number += len(rows)
        yield columns


def parse_cell(cell: str, type_: str) -> str | float | bool | None:
    """A cell's value: None if empty, else a number, a boolean, or the text itself.

    Raises:
        ValueError: the cell does not hold a value of this type.
    """
    if cell == "":
        return None
    match type_:
        case "number":
            try:
                number = float(cell)
            except ValueError:
                raise ValueError(f"{cell!r} is not a number") from None
            if not isfinite(number):
                message = "is not a finite number; leave the cell empty if it is missing"
                raise ValueError(f"{cell!r} {message}")
            return number
        case "boolean":
            if cell.lower() not in BOOLEANS:
                raise ValueError(f"{cell!r} is not one of {', '.join(BOOLEANS)}")
            return BOOLEANS[cell.lower()]
        case _:
            return cell


def _parse_value(value: Any, type_: str) -> str | float | bool | None:
    """A value of a typed format; times become RFC 3339, integers of a category text."""
    match type_, value:
        case _, None:
            return None
        case "number", bool():
            raise ValueError(f"{value!r} is not a number")
        case "number", int() | float() | Decimal():
            if isfinite(value):
                return float(value)
            raise ValueError(f"{value} is not a finite number; null is a missing one")
        case ("number", _) | ("boolean", str() | int() | float()) if not isinstance(value, bool):
            raise ValueError(f"{value!r} is not a {type_}")
        case _, date():
            return value.isoformat()
        case "category", int():
            return str(value)
        case ("boolean", bool()) | (_, str()):
            return value
        case _:
            raise ValueError(f"{value!r} is not a {type_}")
