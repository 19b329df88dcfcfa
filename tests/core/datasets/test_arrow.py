"""Arrow streams and Parquet files: types, damage, and small files that would become large."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.columns import canonical
from core.datasets.formats import arrow, parquet
from core.exceptions import Invalid, NotParseable, TooLarge
from tests.fuzz.bombs import parquet_file, repeated, stream

LIMIT = 2**28

Read = Callable[..., pa.Table]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads Parquet if it begins like one, else an Arrow stream."""

    def do(content: bytes, limit: int = LIMIT) -> pa.Table:
        path = tmp_path / "file"
        path.write_bytes(content)
        module = parquet if content[:4] == b"PAR1" else arrow
        return canonical(module.read(path, limit))

    return do


COLUMNS: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "float32": (pa.array([0.5, float("nan")], pa.float32()), pa.float32(), [0.5, None]),
    "decimal": (pa.array([1, None], pa.decimal128(10, 2)), pa.float64(), [1.0, None]),
    "dictionary": (pa.array(["a", None]).dictionary_encode(), pa.large_string(), ["a", None]),
    "time": (pa.array([1, None], pa.time32("ms")), pa.large_string(), ["00:00:00.001", None]),
}


@pytest.mark.parametrize("write", [stream, parquet_file])
@pytest.mark.parametrize("kind", COLUMNS)
def test_types_become_canonical(read: Read, write: Callable[[pa.Table], bytes], kind: str) -> None:
    given, type_, expected = COLUMNS[kind]
    column = read(write(pa.table({"x": given}))).column("x")
    assert (column.type, column.to_pylist()) == (type_, expected)


@pytest.mark.parametrize("write", [stream, parquet_file])
def test_times_become_utc(read: Read, write: Callable[[pa.Table], bytes]) -> None:
    noon = 1_600_000_000
    table = pa.table(
        {
            "zoned": pa.array([noon * 10**9 + 1], pa.timestamp("ns", "America/New_York")),
            "naive": pa.array([noon * 10**3], pa.timestamp("ms")),
            "day": pa.array([18_518], pa.date32()),
            "text": pa.array(["2020-09-13T14:26:40+02:00"]),
        }
    )
    expected = [pa.scalar(noon * 10**6, pa.timestamp("us", "UTC"))] * 2
    result = read(write(table))
    assert [result.column(name)[0] for name in ("zoned", "naive")] == expected
    assert result.column("text")[0] == expected[0]
    assert str(result.column("day")[0]) == "2020-09-13 00:00:00+00:00"


@pytest.mark.parametrize("write", [stream, parquet_file])
def test_tensors_and_lists_of_one_length(read: Read, write: Callable[[pa.Table], bytes]) -> None:
    array = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    table = pa.table(
        {
            "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(array),
            "list": pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)),
        }
    )
    result = read(write(table))
    assert np.array_equal(result.column("tensor").chunk(0).to_numpy_ndarray(), array)
    assert result.schema.field("list").type == pa.fixed_shape_tensor(pa.int16(), (2,))


@pytest.mark.parametrize(
    ("table", "path", "message"),
    [
        (pa.table([pa.array([1]), pa.array([2])], ["a", "a"]), "/columns/a", "occurs twice"),
        (pa.table({"x": pa.array([], pa.int64())}), "/columns", "there are no rows"),
        (pa.table({"x": pa.array([1, np.inf], pa.float32())}), "/columns/x/1", "is infinite"),
        (pa.table({"x": pa.array([[1], None], pa.list_(pa.int8(), 1))}), "/columns/x", "lacks"),
        (
            pa.table({"x": pa.array([0, -(2**63)], pa.timestamp("s"))}),  # 0 as microseconds
            "/columns/x/1",
            "the years 1 to 9999",
        ),
    ],
)
def test_values_without_place_fail(read: Read, table: pa.Table, path: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        read(stream(table))
    assert refused.value.errors[0][0] == path


def _patched(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new)


STRINGS = pa.table({"x": ["aa", "bb", "cc"]})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello, I am not Arrow at all",
        b"PAR1 and not much more",
        stream(STRINGS)[:-100],
        parquet_file(STRINGS)[:-20],
        _patched(
            stream(STRINGS), struct.pack("<4i", 0, 2, 4, 6), struct.pack("<4i", 0, 2, 2**30, 6)
        ),
        _patched(stream(STRINGS), b"aabbcc", b"aa\xffbcc"),
        _patched(
            stream(pa.table({"x": pa.array(["a", "b"]).dictionary_encode()})),
            struct.pack("<2i", 0, 1),
            struct.pack("<2i", 0, 9),
        ),
        _patched(stream(pa.table({"name": [1]})), b"name", b"n\xffme"),
        _patched(
            stream(pa.table({"x": pa.array([0], pa.timestamp("s", "Zone"))})), b"Zone", b"Z\xffne"
        ),
    ],
    ids=lambda content: f"{len(content)}-bytes",
)
def test_damage_is_seen(read: Read, content: bytes) -> None:
    """Offsets and indices are addresses in memory: believing them would be a way in."""
    with pytest.raises(NotParseable, match=r"is not .*, or damaged"):
        read(content)


BOMBS: dict[str, Callable[[], bytes]] = {
    "compressed": lambda: stream(pa.table({"x": np.zeros(2**22)}), compression="zstd"),
    "rows": lambda: _patched(
        stream(pa.table({"x": pa.nulls(123_457)})),
        struct.pack("<q", 123_457),
        struct.pack("<q", 2**40),
    ),
    "dictionary": lambda: stream(repeated("x" * 2**14, 2**14)),
    "parquet-rows": lambda: parquet_file(pa.table({"x": np.zeros(2**22, np.int8)})),
    "parquet-dictionary": lambda: parquet_file(repeated("x" * 2**16, 2**12)),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_small_files_do_not_become_large(read: Read, kind: str) -> None:
    """Each would take twice the limit or more."""
    bomb, limit = BOMBS[kind](), 2**21
    assert len(bomb) < limit // 8
    with pytest.raises(TooLarge, match=f"CREDENCE_MAX_DATASET_BYTES is {limit}"):
        read(bomb, limit)
