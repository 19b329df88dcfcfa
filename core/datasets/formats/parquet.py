"""Parquet."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from core.datasets.columns import UnsupportedType, check_types
from core.datasets.columns.place import MAX_COLUMNS
from core.datasets.columns.strings import is_string
from core.datasets.files.spilled import Spill
from core.datasets.formats.arrow import checked_parts, collect
from core.datasets.formats.limits import check_size
from core.datasets.formats.parquet_pages import (
    check_stored_schema,
    num_columns,
    shares_prefixes,
    unpacked_sizes,
)
from core.exceptions import Invalid, NotParseable

BATCH_ROWS = 8192
WHAT = "the Parquet file"
BROKEN = (pa.ArrowException, OSError, ValueError, EOFError, NotImplementedError, struct.error)


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read all row groups in small batches.

    Strings stay dictionaries until their size is counted: a small page may repeat a long string.

    Raises:
        NotParseable: it is not a Parquet file.
        Invalid: a column type is not supported.
        UnsupportedType: also if strings share prefixes, and may be far larger than their page.
        TooLarge: the decoded file has more than `max_bytes`.
    """
    with _batches(path, max_bytes) as (schema, batches):
        return collect(schema, batches, max_bytes, WHAT)


def read_spilled(path: Path, max_bytes: int, spill: Spill) -> tuple[pa.Table, bool]:
    """As `read`, a batch of rows in memory at a time. Also whether the table lies in a file."""
    with _batches(path, max_bytes) as (schema, batches):
        return spill.collect(schema, checked_parts(batches, max_bytes, WHAT))


@contextmanager
def _batches(path: Path, max_bytes: int) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The schema and the rows of a file whose sizes are checked. Raises as `read` does."""
    try:
        with pa.memory_map(str(path)) as mapped:
            data = memoryview(mapped.read_buffer()).cast("B")
        check_stored_schema(data)
        if (count := num_columns(data)) > MAX_COLUMNS:
            raise Invalid([("/columns", f"there are {count} columns: give at most {MAX_COLUMNS}")])
        check_size(sum(unpacked_sizes(data)), max_bytes, WHAT)
        if shares_prefixes(data):
            raise UnsupportedType([("/columns", "have strings in the encoding DELTA_BYTE_ARRAY")])
        with parquet.ParquetFile(path) as file:
            check_size(_claimed_bytes(file), max_bytes, WHAT)
            check_types(file.schema_arrow)
            names = [field.name for field in file.schema_arrow if is_string(field.type)]
        with parquet.ParquetFile(path, read_dictionary=names, memory_map=True) as file:
            yield file.schema_arrow, file.iter_batches(batch_size=BATCH_ROWS)
    except MemoryError:
        raise
    except BROKEN as error:
        raise NotParseable("the file is not Parquet, or damaged") from error


def _claimed_bytes(file: parquet.ParquetFile) -> int:
    metadata = file.metadata
    groups = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    return max(sum(groups), 8 * metadata.num_rows * len(file.schema_arrow))
