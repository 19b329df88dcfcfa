"""Rows in files of several formats, as the records that `POST /predict` takes.

csv      a header, an empty cell is a missing value (`prediction_rows`)
jsonl    an object per line
parquet, arrow (a stream)
text     a line per row, for language models
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from decimal import Decimal
from io import TextIOWrapper
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import IO, Any, Literal

from credence.prediction_rows import BadRows, Rows, at_least_one, check_features, read_rows
from credence.types import Feature, Json

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


def format_of(file: Path) -> RowFormat:
    """What a file's suffix stands for.

    Raises:
        BadRows: for any other suffix.
    """
    if file.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise BadRows(f"suffix {file.suffix!r} is none of {known}; --from tells the format")
    return SUFFIXES[file.suffix.lower()]


@contextmanager
def open_rows(
    source: Path | IO[bytes], format_: RowFormat, features: Sequence[Feature]
) -> Iterator[Rows]:
    """The rows of a file, read as they are asked for.

    Raises:
        BadRows: they are not in this format, or lack a feature; also while they are read.
    """
    with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
        if format_ in LINES:
            with _text(file) as lines:
                yield LINES[format_](lines, features)
        else:
            yield _arrow_batches(file, format_, features)


@contextmanager
def _text(file: IO[bytes]) -> Iterator[TextIOWrapper]:
    """Its lines, with or without a spreadsheet's byte order mark; the file stays open."""
    lines = TextIOWrapper(file, newline="", encoding="utf-8-sig")
    try:
        yield lines
    finally:
        lines.detach()


def _texts(lines: Iterable[str], features: Sequence[Feature]) -> Rows:
    return _select(({"text": line.rstrip("\r\n")} for line in lines), ["text"], features)


def _json_lines(lines: Iterable[str], features: Sequence[Feature]) -> Rows:
    def records() -> Iterator[Json]:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise BadRows(f"row {number}: not JSON: {error}") from None
            if not isinstance(record, dict):
                raise BadRows(f"row {number}: {type(record).__name__} is no object with columns")
            yield record

    rest = records()
    first = next(rest, None)
    if first is None:
        raise BadRows("no rows: write an object per line")

    return _select(chain([first], rest), list(first), features)


LINES: dict[str, Callable[[Iterable[str], Sequence[Feature]], Rows]] = {
    "csv": read_rows,
    "jsonl": _json_lines,
    "text": _texts,
}


def _arrow_batches(file: IO[bytes], format_: RowFormat, features: Sequence[Feature]) -> Rows:
    import pyarrow as pa  # noqa: PLC0415 - a quarter of a second, for these formats alone
    from pyarrow import parquet  # noqa: PLC0415

    try:
        if format_ == "arrow":
            source: Any = file
            batches: Any = pa.ipc.open_stream(source)
            names = batches.schema.names
        else:
            table = parquet.ParquetFile(pa.BufferReader(file.read()))
            names, batches = table.schema_arrow.names, table.iter_batches()
    except pa.ArrowException as error:
        raise BadRows(f"not a file of the format {format_}: {error}") from None
    return _select((row for batch in batches for row in batch.to_pylist()), names, features)


def _select(records: Iterable[Json], names: list[str], features: Sequence[Feature]) -> Rows:
    """The features alone, in the types of JSON."""
    check_features(names, features)
    wanted = {feature["name"]: feature["type"] for feature in features}
    ignored = tuple(name for name in names if name not in wanted)

    def selected() -> Iterator[Json]:
        for number, record in enumerate(records, start=1):
            try:
                yield {name: _value(record[name], name, type_) for name, type_ in wanted.items()}
            except KeyError as error:
                raise BadRows(f"row {number}: no column {error}") from None
            except ValueError as error:
                raise BadRows(f"row {number}, {error}") from None

    return Rows(at_least_one(selected(), "no rows in it"), ignored)


def _value(value: Any, name: str, type_: str) -> Any:
    """Times as RFC 3339, codes of categories as text, as CSV has them."""
    match value:
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case float() if not isfinite(value):
            message = f"column {name!r}: {value} is not a finite number; null is a missing one"
            raise ValueError(message)
        case int() if type_ == "category":
            return str(value)
        case _:
            return value
