"""Arrow, Feather, ORC and Parquet with nested columns: to be run in a child with limits."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, orc, parquet

from core.datasets.columns import UnsupportedType
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Reader, Source
from core.datasets.formats.confined import confined
from core.datasets.formats.nested import flattened
from core.datasets.formats.pandas_index import without_index
from core.exceptions import NotParseable

BROKEN = (pa.ArrowException, OSError, ValueError, NotImplementedError, EOFError)


def with_nested(read: Any, name: str, what: str) -> Reader:
    """A reader that goes to a child for files with columns that `read` does not know.

    Args:
        read: takes a path and the maximum of bytes, gives a table, or raises `UnsupportedType`.
        name: of the function in this module that reads the file in the child.
        what: the name of the file, for messages.
    """
    nested = confined(f"{__name__}:{name}", what)

    def do(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
        try:
            return without_index(Source(table=read(path, max_bytes)), options)
        except UnsupportedType:
            return nested(path, max_bytes, options)

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
