"""Files of rows, cut into parts that are predicted independently."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from core.exceptions import Invalid
from credence.bulk.files import RowFile
from credence.bulk.places import filesystem
from models.features.columns import InputColumn

PART_ROWS = 2**20  # of a Parquet file, in whole row groups: seconds of work, which a kill may lose
BATCH_ROWS = 2**16  # in memory at a time
READERS = 16  # of footers at a time: a bucket answers each after some ten milliseconds


@dataclass(frozen=True)
class Part:
    """Rows that become one file.

    Attributes:
        row_groups: the first of a Parquet file, and the one after the last; None of a CSV file.
        rows: their number; None if only reading tells it.
    """

    number: int
    file: RowFile
    row_groups: tuple[int, int] | None
    rows: int | None


@dataclass(frozen=True)
class _Read:
    """What is known of a file before its rows are read."""

    schema: pa.Schema
    group_rows: tuple[int, ...] | None


def plan(
    files: Sequence[RowFile], inputs: Sequence[InputColumn], keep: Sequence[str]
) -> tuple[list[Part], pa.Schema]:
    """The parts of all files, and the types of the columns that are kept.

    Raises:
        Invalid: a file lacks a column, or has one to keep in another type than the first file.
    """
    parts: list[Part] = []
    kept: pa.Schema | None = None
    with ThreadPoolExecutor(READERS) as pool:
        for file, read in zip(files, pool.map(partial(_read, inputs=inputs), files), strict=True):
            _check(file, read.schema, [*(column.name for column in inputs), *keep])
            fields = pa.schema([read.schema.field(name) for name in keep])
            kept = kept or fields
            if fields != kept:
                raise Invalid([(file.path, "has columns to keep of other types than the first")])
            parts += _cut(file, read, len(parts))
    assert kept is not None
    return parts, kept


def batches(
    part: Part, inputs: Sequence[InputColumn], keep: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a part, the columns of the model and those to keep alone."""
    names = list(dict.fromkeys([*(column.name for column in inputs), *keep]))
    values = {name: value for name, value in part.file.values if name in names}
    inside = [name for name in names if name not in values]
    for batch in _inside(part, inputs, inside):
        if batch.num_rows:
            for name, value in values.items():
                batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))  # noqa: PLW2901
            yield batch.select(names)


def _inside(
    part: Part, inputs: Sequence[InputColumn], names: list[str]
) -> Iterator[pa.RecordBatch]:
    files, path = filesystem(part.file.path)
    if part.row_groups is None:
        options = _conversion(inputs, names)
        with (
            files.open_input_stream(path) as stream,
            pyarrow.csv.open_csv(cast(IO[Any], stream), convert_options=options) as reader,
        ):
            yield from reader
        return
    with files.open_input_file(path) as opened, pq.ParquetFile(opened, pre_buffer=True) as file:
        groups = list(range(*part.row_groups))
        yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names)


def _read(file: RowFile, inputs: Sequence[InputColumn]) -> _Read:
    files, path = filesystem(file.path)
    values = {name: pa.scalar(value).type for name, value in file.values}
    if file.is_parquet:
        with files.open_input_file(path) as opened:
            about = pq.read_metadata(opened)
        groups = tuple(about.row_group(one).num_rows for one in range(about.num_row_groups))
        schema = about.schema.to_arrow_schema().remove_metadata()
    else:
        groups, conversion = None, _conversion(inputs)
        with (
            files.open_input_stream(path) as stream,
            pyarrow.csv.open_csv(cast(IO[Any], stream), convert_options=conversion) as reader,
        ):
            schema = reader.schema
    return _Read(pa.schema([*schema, *(pa.field(*pair) for pair in values.items())]), groups)


def _check(file: RowFile, schema: pa.Schema, names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in schema.names]:
        there = ", ".join(schema.names[:20])
        raise Invalid([(file.path, f"lacks the columns {', '.join(missing)}; it has {there}")])


def _cut(file: RowFile, read: _Read, first: int) -> Iterator[Part]:
    """Whole row groups up to `PART_ROWS`; a CSV file is one part."""
    if read.group_rows is None:
        yield Part(first, file, None, None)
        return
    start = rows = number = 0
    for group, size in enumerate(read.group_rows):
        if rows and rows + size > PART_ROWS:
            yield Part(first + number, file, (start, group), rows)
            start, rows, number = group, 0, number + 1
        rows += size
    yield Part(first + number, file, (start, len(read.group_rows)), rows)


def _conversion(
    inputs: Sequence[InputColumn], names: list[str] | None = None
) -> pyarrow.csv.ConvertOptions:
    """Columns that the model reads as texts stay texts, as they are in a file that is uploaded."""
    plain: dict[str, Any] = {"number": pa.float64(), "boolean": pa.bool_()}
    types = {
        column.name: pa.string() if column.reading else plain.get(column.type, pa.string())
        for column in inputs
    }
    return pyarrow.csv.ConvertOptions(
        include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True
    )
