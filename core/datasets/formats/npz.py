"""NumPy's npz: each array is a column with rows on the first axis. Nothing is unpickled.

Fields of structured arrays are columns. In an npy file, which has one array, the columns of a
matrix are columns, too.
"""

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from core.datasets.columns import check_names, tensors
from core.datasets.columns.place import Place
from core.datasets.files.archives import opened_zip
from core.datasets.formats.limits import check_size
from core.exceptions import NotParseable

SINGLE = "value"  # the column of a file with one array
MAX_MATRIX_COLUMNS = 1000  # a wider matrix is one tensor column
READABLE_KINDS = "biufUM"  # booleans, integers, floats, strings, times; no objects
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    struct.error,
)
BLOCK_BYTES = 2**24  # of texts at a time: as Python strings they take up to twenty times as much


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file whose arrays have the same number of rows.

    Each array's header is compared with the bytes in the archive before memory is allocated.

    Raises:
        NotParseable: it is not an npz archive, or an array has other bytes than its header says.
        Invalid: an array cannot be a column.
        TooLarge: the arrays have more than `max_bytes`.
    """
    with path.open("rb") as file:
        is_single = file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX
    arrays = _table(_read_single(path, max_bytes)) if is_single else _read_all(path, max_bytes)
    check_names(list(arrays))
    _check_rows(arrays)
    check_size(sum(map(_plain_bytes, arrays.values())), max_bytes, "the npz file")
    return pa.table({name: _column(array, Place(name)) for name, array in arrays.items()})


def _read_all(path: Path, max_bytes: int) -> dict[str, np.ndarray]:
    """The arrays of an archive; of structured ones each field."""
    found: dict[str, np.ndarray] = {}
    try:
        with opened_zip(path) as archive:
            members = _members(archive)
            check_names([name for name, _ in members])
            check_size(sum(m.file_size for _, m in members), max_bytes, "the npz file")
            for name, member in members:
                array = _read(partial(archive.open, member), member.file_size, Place(name))
                found |= {f"{name}.{field}" if field else name: a for field, a in _fields(array)}
    except BROKEN as error:
        raise NotParseable("the file is not an npz archive, or damaged") from error
    return found


def _read_single(path: Path, max_bytes: int) -> np.ndarray:
    check_size(path.stat().st_size, max_bytes, "the npy file")
    try:
        return _read(lambda: path.open("rb"), path.stat().st_size, Place(SINGLE))
    except BROKEN as error:
        raise NotParseable("the file is not an npy file, or damaged") from error


def _table(array: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of a file with one array: its fields, or the columns of a matrix."""
    if array.dtype.names is None and array.ndim == 2 and array.shape[1] <= MAX_MATRIX_COLUMNS:
        return {f"column_{i + 1}": _plain_array(array[:, i]) for i in range(array.shape[1])}
    return {field or SINGLE: values for field, values in _fields(array)}


def _fields(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The fields of a structured array by name, or the array itself without a name."""
    if array.dtype.names is None:
        yield "", _plain_array(array)
        return
    for name in array.dtype.names:
        yield name, _plain_array(array[name])


def _plain_bytes(array: np.ndarray) -> int:
    """The size of an array; at least 8 bytes a row, because columns become float64 later."""
    return max(array.nbytes, 8 * len(array))


def _members(archive: zipfile.ZipFile) -> list[tuple[str, zipfile.ZipInfo]]:
    members = [(m.filename.removesuffix(".npy"), m) for m in archive.infolist()]
    for name, member in members:
        if name == member.filename:
            raise NotParseable(f"the npz file holds {name[:80]!r}: only arrays (.npy) may be in it")
    return members


def _read(open_: Callable[[], IO[bytes]], file_size: int, place: Place) -> np.ndarray:
    with open_() as file:
        _check_header(file, file_size, place)
    with open_() as file:
        try:
            return npy.read_array(file, allow_pickle=False)
        except (ValueError, OverflowError, TypeError) as error:
            raise NotParseable(f"array {place.name!r} cannot be read") from error


def _plain_array(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # a long double may become infinite: `canonical` raises
        return np.ascontiguousarray(array.astype(_plain(array.dtype), copy=False))


def _check_header(file: IO[bytes], file_size: int, place: Place) -> None:
    """Compare shape and type of the array's header with the member's size."""
    try:
        shape, _, dtype = HEADER_READERS[npy.read_magic(file)](file)
    except Exception as error:  # Python parses it, which can raise many exceptions
        raise NotParseable(f"array {place.name!r} has no valid npy header") from error
    if not _is_readable(dtype):
        raise place.invalid(f"has the type {dtype}: give numbers, booleans, strings or times")
    if not shape or (len(shape) > 1 and dtype.kind not in "biuf"):
        raise place.invalid(
            f"is an array of {dtype} with shape {list(shape)}: give one axis, the rows, or more "
            "for numbers"
        )
    claimed, present = math.prod(shape) * dtype.itemsize, file_size - file.tell()
    if claimed != present:
        raise NotParseable(
            f"array {place.name!r} claims {claimed} bytes and {present} are there: it is damaged"
        )


def _is_readable(dtype: np.dtype) -> bool:
    if dtype.fields is None:
        return dtype.kind in READABLE_KINDS
    parts = [field.base for field, *_ in dtype.fields.values()]
    shaped = [field.base.kind for field, *_ in dtype.fields.values() if field.shape]
    is_flat = all(part.fields is None and part.kind in READABLE_KINDS for part in parts)
    return is_flat and all(kind in "biuf" for kind in shaped)


def _plain(dtype: np.dtype) -> np.dtype:
    """The same type in this machine's byte order, floats of at most 64 bits, microseconds."""
    if dtype.kind == "M":
        return np.dtype("datetime64[us]")
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    return dtype.newbyteorder("=")


def _check_rows(arrays: dict[str, np.ndarray]) -> None:
    first, expected = next((name, len(array)) for name, array in arrays.items())
    for name, array in arrays.items():
        if len(array) != expected:
            raise Place(name).invalid(
                f"has {len(array)} rows and {first!r} has {expected}: give all the same number"
            )


def _column(array: np.ndarray, place: Place) -> "pa.Array[Any] | pa.ChunkedArray[Any]":
    if array.ndim > 1:
        if 0 in array.shape:
            raise place.invalid(f"is an empty array of shape {list(array.shape)}")
        return tensors.from_numpy(array)
    return _texts(array, place) if array.dtype.kind == "U" else pa.array(array)


def _texts(array: np.ndarray, place: Place) -> "pa.ChunkedArray[Any]":
    """Strings as Arrow's, `BLOCK_BYTES` at a time."""
    step = max(1, BLOCK_BYTES // max(1, array.itemsize))
    try:
        blocks = [
            pa.array(array[start : start + step].tolist(), pa.large_string())
            for start in range(0, max(1, len(array)), step)
        ]
    except (ValueError, SystemError) as error:  # half of a surrogate pair, or beyond Unicode
        raise place.invalid("holds a character that is not in Unicode") from error
    return pa.chunked_array(blocks, pa.large_string())
