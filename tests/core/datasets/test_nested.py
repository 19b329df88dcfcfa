"""Nested and unusual columns of Arrow, Feather, ORC and Parquet, written by several libraries."""

import io
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, orc, parquet

from core.datasets.columns.conversion import to_json, to_numpy
from core.datasets.files.opening import opened
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.understanding.columns import understand
from core.exceptions import CredenceError, NotParseable, TooLarge
from tests.core.datasets import reading

pytestmark = pytest.mark.process
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
        return reading.read(file, limit, ReadingOptions(**options))


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
    said = {f.column: f.message for f in source.findings if f.code == "nested"}
    assert set(said) == {"ragged", "words", "gone"}
    assert "lists of different lengths (0 to 2): it was left out" in said["ragged"]
    assert "lists of string, not of numbers" in said["words"]
    assert "holds lists, and 1 are missing" in said["gone"]


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


def test_a_frame_of_pandas_comes_back(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "n": [1.5, None, 3],
            "i": pd.array([1, None, 3], "Int64"),
            "s": ["a", None, "c"],
            "c": pd.Categorical(["x", "y", "x"]),
            "t": pd.to_datetime(["2020-01-01 10:00", None, "2021-03-04"], format="ISO8601"),
            "d": [Decimal("1.25"), Decimal("2.50"), None],
            "b": [True, False, True],
        }
    )
    for write in (frame.to_parquet, frame.to_feather, frame.to_orc):
        name = write.__name__
        path = tmp_path / name
        plain = frame.astype({"c": str}) if name == "to_orc" else frame
        getattr(plain, name)(path)
        source = read(tmp_path, path.read_bytes())
        columns = {one.reading.name: one.column for one in understand(source, {})}
        rows = to_json(pa.table(columns))
        assert rows[0]["n"] == 1.5
        assert [row["i"] for row in rows] == [1, None, 3]
        assert [row["s"] for row in rows] == ["a", None, "c"]
        assert [row["c"] for row in rows] == ["x", "y", "x"]
        assert [row["t"] for row in rows] == ["2020-01-01T10:00:00Z", None, "2021-03-04T00:00:00Z"]
        assert [row["d"] for row in rows] == [1.25, 2.5, None]
        assert [row["b"] for row in rows] == [True, False, True]


def test_a_frame_of_polars_comes_back(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "n": [1.5, None],
            "s": ["a", "é"],
            "c": pl.Series(["x", "y"], dtype=pl.Categorical),
            "day": [date(2020, 1, 2), None],
            "at": [datetime(2020, 1, 2, 3, tzinfo=UTC), None],
            "v": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
            "st": [{"a": 1}, {"a": 2}],
        }
    )
    for flat, write in (
        *(
            (frame.drop("st"), write)
            for write in ("write_parquet", "write_ipc", "write_ipc_stream")
        ),
        *((frame, write) for write in ("write_parquet", "write_ipc", "write_ipc_stream")),
    ):
        buffer = io.BytesIO()
        getattr(flat, write)(buffer)
        table = read(tmp_path, buffer.getvalue()).table
        assert table.column_names[:6] == ["n", "s", "c", "day", "at", "v"]
        assert table.column("s").to_pylist() == ["a", "é"]
        assert table.column("c").to_pylist() == ["x", "y"]
        assert table.column("v").to_pylist() == [[1, 2], [3, 4]]
        if "st" in flat.columns:
            assert table.column("st.a").to_pylist() == [1, 2]


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_both_versions_of_feather_are_read(tmp_path: Path, version: Any, compression: Any) -> None:
    buffer = io.BytesIO()
    table = pa.table({"a": [1.5, 2.5], "s": ["x", None]})
    given = {} if version == 1 else {"compression": compression}
    feather.write_feather(table, buffer, version=version, **given)
    assert read(tmp_path, buffer.getvalue()).table.to_pydict() == table.to_pydict()


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


@pytest.mark.parametrize("kind", ["parquet", "orc", "feather"])
def test_damage_is_seen(tmp_path: Path, kind: str) -> None:
    content = bytearray(written(kind, NESTED))
    with pytest.raises(CredenceError):
        read(tmp_path, bytes(content[: len(content) // 2]))
    for place in range(8, len(content) - 8, max(1, len(content) // 6)):
        damaged = bytearray(content)
        damaged[place : place + 4] = b"\xff\xff\xff\x7f"
        try:
            read(tmp_path, bytes(damaged))
        except CredenceError as error:
            assert str(error)  # noqa: PT017 - it may also be read


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
        read(tmp_path, buffer.getvalue(), 2**26)
