"""Nested and unusual columns of Arrow, Feather, ORC and Parquet, written by several libraries."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, orc, parquet

from core.datasets.files.opening import opened
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.exceptions import NotParseable, TooLarge
from tests.core.datasets import reading

LIMIT = 2**26
ANY = "application/octet-stream"


def as_stream(table: pa.Table, buffer: Any) -> None:
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pa.Table, Any], Any]] = {
    "parquet": parquet.write_table,
    "feather": feather.write_feather,
    "arrow": as_stream,
    "orc": orc.write_table,
}


def read(folder: Path, content: bytes, limit: int = LIMIT, **options: Any) -> Source:
    path = folder / "file"
    path.write_bytes(content)
    with opened(path, ANY, limit) as file:
        return file.read(limit, ReadingOptions(**options))


def read_in_a_child(folder: Path, content: bytes) -> Source:
    path = folder / "file"
    path.write_bytes(content)
    with opened(path, ANY, LIMIT) as file:
        return reading.read(file, LIMIT)


def written(kind: str, table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    WRITERS[kind](table, buffer)
    return buffer.getvalue()


@pytest.mark.stack
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_small_nested_files_do_not_become_large(tmp_path: Path, kind: str) -> None:
    """A long string repeated in a struct: half a gigabyte and more, in a child that stops."""
    text = pa.DictionaryArray.from_arrays(np.zeros(2**13, np.int32), ["x" * 2**17]).cast("string")
    column = pa.StructArray.from_arrays([text], ["a"])
    buffer = io.BytesIO()
    write: Any = WRITERS[kind]
    write(pa.table({"s": column}), buffer, compression="zstd")
    assert len(buffer.getvalue()) < 2**21
    with pytest.raises((TooLarge, NotParseable)):
        read_in_a_child(tmp_path, buffer.getvalue())
