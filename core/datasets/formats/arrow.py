"""Arrow's stream format."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import UnsupportedType, check_types
from core.datasets.formats.ipc_sizes import decoded_sizes
from core.datasets.formats.limits import check_size
from core.exceptions import NotParseable

FEATHER_1 = b"FEA1"
FILE_MARK = b"ARROW1\0\0"


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file; see `read_stream`."""
    with pa.memory_map(str(path)) as file:
        return read_stream(file, max_bytes)


def read_file(path: Path, max_bytes: int) -> pa.Table:
    """Read an Arrow file (Feather, version 2) in which a stream follows the mark.

    Raises:
        UnsupportedType: also for Feather of version 1, and for files written in another order.
    """
    with pa.memory_map(str(path)) as file:
        data = file.read_buffer()
    if data[: len(FEATHER_1)].to_pybytes() == FEATHER_1:
        raise UnsupportedType([("", "Feather of version 1 is not an Arrow file")])
    if data[: len(FILE_MARK)].to_pybytes() != FILE_MARK:
        raise NotParseable("this is not an Arrow file, or damaged")
    try:
        return read_stream(pa.BufferReader(data[len(FILE_MARK) :]), max_bytes)
    except NotParseable as error:
        raise UnsupportedType([("", str(error))]) from error


def read_stream(file: pa.NativeFile, max_bytes: int, pointer: str = "/columns") -> pa.Table:
    """Read all batches. Buffers that are not compressed are not copied.

    Raises:
        NotParseable: it is not an Arrow stream.
        Invalid: a column type is not supported.
        TooLarge: the decoded stream has more than `max_bytes`.
    """
    try:
        check_size(sum(decoded_sizes(file)), max_bytes, "the Arrow stream")
        file.seek(0)
        reader = pa.ipc.open_stream(file)
        _check_texts(reader.schema)
        check_types(reader.schema, pointer)
        return collect(reader.schema, reader, max_bytes, "the Arrow stream")
    except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
        raise NotParseable("this is not an Arrow stream, or damaged") from error


def _check_texts(schema: pa.Schema) -> None:
    """Raise `UnicodeDecodeError` if a field's name or time zone is not UTF-8."""
    for field in schema:
        _ = field.name, getattr(field.type, "tz", None)


def collect(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], max_bytes: int, what: str
) -> pa.Table:
    """Join batches. Each is validated first, and its size as plain columns is counted.

    Args:
        what: the name of the source, for `TooLarge`.
    """
    kept = list(checked_parts(batches, max_bytes, what))
    return pa.concat_tables(kept) if kept else schema.empty_table()


def checked_parts(
    batches: Iterable[pa.RecordBatch], max_bytes: int, what: str
) -> Iterator[pa.Table]:
    """Each batch without dictionaries, checked as `collect` says."""
    size = 0
    for batch in batches:
        batch.validate(full=True)  # do not trust offsets, dictionary indices and UTF-8
        size += sum(_plain_bytes(column) for column in batch.columns)
        check_size(size, max_bytes, what)
        yield pa.table({}) if not batch.num_columns else _without_dictionaries(batch)


def _plain_bytes(column: Any) -> int:
    """The size of a column with its dictionary expanded; at least 8 bytes a row."""
    size = column.nbytes
    if isinstance(column, pa.DictionaryArray):
        levels: Any = column.dictionary.cast(pa.large_string())
        lengths = pc.binary_length(levels)
        size = pc.sum(lengths.take(column.indices)).as_py() or 0
    return int(max(size, 8 * len(column)))


def _without_dictionaries(batch: pa.RecordBatch) -> pa.Table:
    columns = [
        _texts(column) if isinstance(column, pa.DictionaryArray) else column
        for column in batch.columns
    ]
    return pa.table(columns, names=batch.schema.names)


def _texts(column: Any) -> Any:
    """The levels are cast first: Arrow casts no dictionaries of string views, as polars has."""
    levels = column.dictionary.cast(pa.large_string())
    return levels.take(column.indices)
