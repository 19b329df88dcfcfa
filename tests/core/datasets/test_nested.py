"""Nested and unusual columns of Arrow, Feather, ORC and Parquet, written by several libraries."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, orc, parquet

from core.datasets.columns.conversion import to_numpy
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


NESTED = pa.table(
    {
        "s": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": 3, "b": None}]),
        "v": pa.array([[1.5, 2.5], [3, 4], [5, 6]], pa.list_(pa.float64())),
        "m": pa.array([[[1], [2]], [[3], [4]], [[5], [6]]], pa.list_(pa.list_(pa.int64()))),
        "ragged": pa.array([[1], [], [2, 3]]),
        "words": pa.array([["a"], ["b"], ["c"]]),
        "gone": pa.array([[1], None, [2]]),
        "x": [1, 2, 3],
    }
)


@pytest.mark.parametrize("kind", WRITERS)
def test_structs_are_flat_and_lists_of_one_shape_tensors(tmp_path: Path, kind: str) -> None:
    source = read(tmp_path, written(kind, NESTED))
    table = source.table
    assert table.column_names == ["s.a", "s.b.c", "v", "m", "x"]
    assert table.column("s.a").to_pylist() == [1, None, 3]
    assert table.column("s.b.c").to_pylist() == ["x", None, None]
    assert to_numpy(table.column("v"), "tensor").tolist() == [[1.5, 2.5], [3, 4], [5, 6]]
    assert to_numpy(table.column("m"), "tensor").tolist() == NESTED.column("m").to_pylist()
    said = {f.column for f in source.findings if f.code == "nested"}
    assert said == {"ragged", "words", "gone"}


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_types_without_a_place_are_left_out_and_named(tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {
            "bytes": pa.array([b"\xff", b"b"]),
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
            "took": pa.array([timedelta(seconds=1.5), None]),
            "level": pa.array([7, 8]).dictionary_encode(),
            "x": [1, 2],
        }
    )
    source = read(tmp_path, written(kind, table))
    assert source.table.to_pydict() == {"took": [1.5, None], "level": [7, 8], "x": [1, 2]}
    assert {(f.code, f.column) for f in source.findings} == {
        ("nested", "bytes"),
        ("nested", "map"),
        ("unit", "took"),
    }


INDEXES = {
    "numbers": (pd.Index([5, 7, 9]), True),
    "names": (pd.Index(["a", "b", "c"]), True),
    "times": (pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]), False),
    "repeated": (pd.Index(["a", "a", "b"]), False),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_that_only_names_the_rows_is_left_out(tmp_path: Path, kind: str) -> None:
    index, goes = INDEXES[kind]
    buffer = io.BytesIO()
    pd.DataFrame({"x": [1, 2, 3]}, index=index).to_parquet(buffer)
    content = buffer.getvalue()
    source = read(tmp_path, content)
    assert source.table.column_names == (["x"] if goes else ["x", "__index_level_0__"])
    assert [f.code for f in source.findings] == ["index"] * goes
    assert source.reading.index is (True if goes else None)
    kept = read(tmp_path, content, index=False)
    assert kept.table.column_names == ["x", "__index_level_0__"]


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
