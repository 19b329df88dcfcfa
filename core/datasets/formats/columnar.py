"""Arrow, Feather, ORC and Parquet with nested columns: to be run in a child with limits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, orc, parquet

from core.datasets.columns import UnsupportedType
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Reader, Source
from core.datasets.files.spilled import Spill
from core.datasets.formats.nested import flattened
from core.datasets.formats.pandas_index import without_index
from core.datasets.formats.parquet import read_spilled
from core.exceptions import NotParseable

BROKEN = (pa.ArrowException, OSError, ValueError, NotImplementedError, EOFError)


def strict(read: Callable[[Path, int], pa.Table]) -> Reader:
    """A reader that knows no nested columns, and raises `UnsupportedType` for them.

    Args:
        read: takes a path and the maximum of bytes.
    """

    def do(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
        return without_index(Source(table=read(path, max_bytes)), options)

    return do


def with_nested(read: Callable[[Path, int], pa.Table], nested: Reader) -> Reader:
    """A reader that takes `nested` for files with columns that `read` does not know."""
    plain = strict(read)

    def do(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
        try:
            return plain(path, max_bytes, options)
        except UnsupportedType:
            return nested(path, max_bytes, options)

    return do


def parquet_in_file(spill: Spill) -> Reader:
    """A reader of Parquet that writes a large table to a file, some rows at a time.

    Files with columns that it does not know are read in memory.
    """

    def do(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
        try:
            table, in_file = read_spilled(path, max_bytes, spill)
        except UnsupportedType:
            return read_parquet(path, max_bytes, options)
        return without_index(Source(table=table, spill=spill if in_file else None), options)

    return do


def read_parquet(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
    """Read a Parquet file. Raises `NotParseable`, `Invalid` and `MemoryError`."""
    return _source(lambda: parquet.read_table(path, use_threads=False), "Parquet", options)


def read_orc(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
    """As `read_parquet`, for ORC."""
    return _source(lambda: orc.ORCFile(path).read(), "ORC", options)


def read_feather(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
    """As `read_parquet`, for Arrow files and both versions of Feather."""
    return _source(
        lambda: feather.read_table(path, memory_map=False, use_threads=False),
        "an Arrow file",
        options,
    )


def read_arrow(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
    """As `read_parquet`, for Arrow streams."""
    return _source(lambda: pa.ipc.open_stream(path.read_bytes()).read_all(), "Arrow", options)


def _source(read: Any, what: str, options: ReadingOptions) -> Source:
    try:
        table: pa.Table = read()
        table.validate(full=True)  # do not trust offsets and UTF-8
        flat, findings = flattened(table)
    except MemoryError:
        raise
    except BROKEN as error:
        raise NotParseable(f"the file is not {what}, or damaged") from error
    return without_index(Source(table=flat, findings=findings), options)
