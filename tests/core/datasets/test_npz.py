"""npz: arrays as columns, and archives that are not what they claim."""

import io
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.columns import canonical
from core.datasets.columns.conversion import to_numpy
from core.datasets.formats import npz
from core.exceptions import Invalid, NotParseable, TooLarge
from tests.fuzz.bombs import npy

LIMIT = 2**28

Read = Callable[[bytes], pa.Table]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def do(content: bytes) -> pa.Table:
        path = tmp_path / "file"
        path.write_bytes(content)
        return canonical(npz.read(path, LIMIT))

    return do


def saved(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that occur twice
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def test_images_are_one_tensor_column(read: Read) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
    table = read(saved(images=images, label=np.array([7, 8, 9])))
    assert table.schema.field("images").type == pa.fixed_shape_tensor(pa.uint8(), (2, 4))
    assert np.array_equal(to_numpy(table.column("images"), "tensor"), images)
    assert table.column("label").to_pylist() == [7, 8, 9]


def test_strings_times_and_booleans(read: Read) -> None:
    table = read(
        saved(
            s=np.array(["a", "ü"]),
            t=np.array(["2020-02-03T04:05:06.789", "NaT"], "M8[ms]"),
            b=np.array([True, False]),
            n=np.array([1.5, np.nan]),
        )
    )
    assert to_numpy(table.column("s"), "category").tolist() == ["a", "ü"]
    times = to_numpy(table.column("t"), "datetime")
    assert times[0] == np.datetime64("2020-02-03T04:05:06.789000")
    assert np.isnat(times[1])
    assert to_numpy(table.column("b"), "boolean").tolist() == [1.0, 0.0]
    assert table.column("n").null_count == 1


@pytest.mark.parametrize(
    ("arrays", "path", "message"),
    [
        ({"x": np.array([{}, None], object)}, "/columns/x", "has the type object"),
        ({"x": np.zeros(2, [("a", "O")])}, "/columns/x", "has the type"),
        ({"x": np.array([b"a"])}, "/columns/x", "give numbers, booleans, strings or times"),
        ({"x": np.float64(1)}, "/columns/x", r"with shape \[\]"),
        ({"x": np.zeros((2, 0))}, "/columns/x", r"empty array of shape \[2, 0\]"),
        ({"x": np.zeros(2), "y": np.zeros(3)}, "/columns/y", "has 3 rows and 'x' has 2"),
        ({"x": np.array([1.0, np.inf])}, "/columns/x/1", "is infinite or outside float32"),
        ({"x": np.array([[1.0], [np.nan]])}, "/columns/x/1", "a tensor needs every value"),
        ({"x": np.array(["9999", "10000"], "M8[Y]")}, "/columns/x/1", "the years 1 to 9999"),
        ({}, "/columns", "there are no columns"),
    ],
)
def test_other_arrays_fail(read: Read, arrays: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        read(saved(**arrays))
    assert refused.value.errors[0][0] == path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(("x.txt", b"hi")), "holds 'x.txt': only arrays"),
        (archive(("x.npy", b"\x80\x04\x95pickled")), "no valid npy header"),
        (archive(("x.npy", npy("<f8", (4 * 10**12,), b"\0" * 16))), "claims 32000000000000"),
        (archive(("x.npy", npy("<f8", (3,), b"\0" * 16))), "claims 24 bytes and 16 are there"),
        (archive(("x.npy", npy("<f8", (-2,), b"\0" * 16))), "claims -16 bytes"),
        (archive(("x.npy", npy("__import__('os')", (1,)))), "no valid npy header"),
    ],
)
def test_archives_that_lie_are_refused(read: Read, content: bytes, message: str) -> None:
    with pytest.raises(NotParseable, match=message):
        read(content)


def test_a_pickle_is_never_opened(read: Read) -> None:
    """The header says objects, the body is a pickle that would run a command."""
    with pytest.raises(Invalid, match="has the type object"):
        read(archive(("x.npy", npy("|O", (1,), b"cposix\nsystem\n(S'exit 1'\ntR."))))


def test_a_zip_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    """Some kB that would become 16 MB: refused by what the archive's directory says."""
    zeros = npy("<f8", (2**21,)) + bytes(2**24)
    path = tmp_path / "bomb"
    path.write_bytes(archive(("x.npy", zeros), compression=zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 2**17
    tracemalloc.start()
    with pytest.raises(TooLarge, match="CREDENCE_MAX_DATASET_BYTES is 1048576"):
        npz.read(path, 2**20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def npy_file(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


FIELDS = np.array(
    [(1, 2.5, "a", [1, 2]), (3, 4.5, "é", [3, 4])],
    [("i", ">i4"), ("f", "f8"), ("s", "U3"), ("t", "f4", 2)],
)


@pytest.mark.parametrize("prefix", ["", "x."])
def test_fields_of_structured_arrays_are_columns(read: Read, prefix: str) -> None:
    table = read(saved(x=FIELDS) if prefix else npy_file(FIELDS))
    assert table.column_names == [f"{prefix}{name}" for name in "ifst"]
    assert table.column(f"{prefix}i").to_pylist() == [1, 3]
    assert table.column(f"{prefix}s").to_pylist() == ["a", "é"]
    assert to_numpy(table.column(f"{prefix}t"), "tensor").tolist() == [[1, 2], [3, 4]]


def test_single_arrays_are_a_table_a_column_or_a_tensor(read: Read) -> None:
    table = read(npy_file(np.asfortranarray([[1, 2], [3, 4], [5, 6]])))
    assert table.to_pydict() == {"column_1": [1, 3, 5], "column_2": [2, 4, 6]}
    assert read(npy_file(np.array([1.5, 2.5]))).to_pydict() == {"value": [1.5, 2.5]}
    images = np.arange(24).reshape(2, 3, 4)
    assert to_numpy(read(npy_file(images)).column("value"), "tensor").tolist() == images.tolist()
    with pytest.raises(NotParseable, match="claims"):
        read(npy("<f8", (4 * 10**12,)))
    with pytest.raises(Invalid, match="has the type object"):
        read(npy("|O", (1,)))
