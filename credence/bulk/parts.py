"""Files of rows, cut into parts that are predicted independently."""

import glob
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from core.exceptions import Invalid, UnsupportedFormat
from models.features.columns import InputColumn

PART_ROWS = 2**20  # of a Parquet file, in whole row groups: seconds of work, which a kill may lose
BATCH_ROWS = 2**16  # in memory at a time
PARQUET, CSV = (".parquet", ".pq"), (".csv",)


@dataclass(frozen=True)
class Part:
    """Rows that become one file.

    Attributes:
        row_groups: the first of a Parquet file, and the one after the last; None of a CSV file.
        rows: their number; None if only reading tells it.
    """

    number: int
    path: str
    row_groups: tuple[int, int] | None
    rows: int | None

    @property
    def file(self) -> str:
        """The name of the file of predictions."""
        return f"part-{self.number:05d}.parquet"


def find_files(source: str) -> list[Path]:
    """The files of a path, of a folder or of a pattern such as `rows/*.parquet`, by name.

    Raises:
        FileNotFoundError: there is none.
        UnsupportedFormat: one is neither Parquet nor CSV.
    """
    path = Path(source)
    if path.is_dir():
        found = [one for one in path.iterdir() if one.suffix.lower() in (*PARQUET, *CSV)]
        found = [one for one in found if not one.name.startswith((".", "_"))]
    else:
        matches = glob.glob(source, recursive=True)  # noqa: PTH207 - which may be absolute
        found = [Path(one) for one in matches if Path(one).is_file()]
    if not found:
        raise FileNotFoundError(f"there is no file {source!r}")
    for one in found:
        if one.suffix.lower() not in (*PARQUET, *CSV):
            raise UnsupportedFormat(f"{one} is neither .parquet nor .csv")
    return sorted(one.absolute() for one in found)


def plan(
    files: Sequence[Path], inputs: Sequence[InputColumn], keep: Sequence[str]
) -> tuple[list[Part], pa.Schema]:
    """The parts of all files, and the types of the columns that are kept.

    Raises:
        Invalid: a file lacks a column, or has one to keep in another type than the first file.
    """
    parts: list[Part] = []
    kept: pa.Schema | None = None
    for path in files:
        schema = _schema(path, inputs)
        _check(path, schema, [*(column.name for column in inputs), *keep])
        fields = pa.schema([schema.field(name) for name in keep])
        kept = kept or fields
        if fields != kept:
            raise Invalid([(str(path), "has columns to keep of other types than the first file")])
        parts += _of_parquet(path, len(parts)) if _is_parquet(path) else [_of_csv(path, len(parts))]
    assert kept is not None
    return parts, kept


def batches(
    part: Part, inputs: Sequence[InputColumn], keep: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a part, the columns of the model and those to keep alone."""
    names = list(dict.fromkeys([*(column.name for column in inputs), *keep]))
    if part.row_groups is None:
        options = _conversion(inputs, names)
        with pyarrow.csv.open_csv(part.path, convert_options=options) as reader:
            yield from (batch for batch in reader if batch.num_rows)
        return
    with pq.ParquetFile(part.path) as file:
        groups = list(range(*part.row_groups))
        yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def _schema(path: Path, inputs: Sequence[InputColumn]) -> pa.Schema:
    if _is_parquet(path):
        return pq.read_schema(path).remove_metadata()
    with pyarrow.csv.open_csv(path, convert_options=_conversion(inputs)) as reader:
        return reader.schema


def _check(path: Path, schema: pa.Schema, names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in schema.names]:
        there = ", ".join(schema.names[:20])
        raise Invalid([(str(path), f"lacks the columns {', '.join(missing)}; it has {there}")])


def _of_parquet(path: Path, first: int) -> Iterator[Part]:
    """Whole row groups up to `PART_ROWS`."""
    about = pq.read_metadata(path)
    start = rows = number = 0
    for group in range(about.num_row_groups):
        size = about.row_group(group).num_rows
        if rows and rows + size > PART_ROWS:
            yield Part(first + number, str(path), (start, group), rows)
            start, rows, number = group, 0, number + 1
        rows += size
    yield Part(first + number, str(path), (start, about.num_row_groups), rows)


def _of_csv(path: Path, number: int) -> Part:
    return Part(number, str(path), None, None)


def _conversion(
    inputs: Sequence[InputColumn], names: list[str] | None = None
) -> pyarrow.csv.ConvertOptions:
    """Columns that the model reads as texts stay texts, as they are in a file that is uploaded."""
    plain = {"number": pa.float64(), "boolean": pa.bool_()}
    types = {
        column.name: pa.string() if column.reading else plain.get(column.type, pa.string())
        for column in inputs
    }
    return pyarrow.csv.ConvertOptions(
        include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True
    )
