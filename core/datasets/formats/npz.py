"""NumPy's npz: each array is a column with rows on the first axis. Nothing is unpickled."""

import lzma
import math
import struct
import zipfile
import zlib
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
    try:
        with opened_zip(path) as archive:
            members = _members(archive)
            check_names([name for name, _ in members])
            check_size(sum(m.file_size for _, m in members), max_bytes, "the npz file")
            arrays = {name: _read(archive, member, Place(name)) for name, member in members}
    except BROKEN as error:
        raise NotParseable("the file is not an npz archive, or damaged") from error
    _check_rows(arrays)
    check_size(sum(map(_plain_bytes, arrays.values())), max_bytes, "the npz file")
    return pa.table({name: _column(array, Place(name)) for name, array in arrays.items()})


def _plain_bytes(array: np.ndarray) -> int:
    """The size of an array; at least 8 bytes a row, because columns become float64 later."""
    return max(array.nbytes, 8 * len(array))


def _members(archive: zipfile.ZipFile) -> list[tuple[str, zipfile.ZipInfo]]:
    members = [(m.filename.removesuffix(".npy"), m) for m in archive.infolist()]
    for name, member in members:
        if name == member.filename:
            raise NotParseable(f"the npz file holds {name[:80]!r}: only arrays (.npy) may be in it")
    return members


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Place) -> np.ndarray:
    with archive.open(member) as file:
        _check_header(file, member.file_size, place)
    with archive.open(member) as file:
        try:
            array = npy.read_array(file, allow_pickle=False)
        except (ValueError, OverflowError, TypeError) as error:
            raise NotParseable(f"array {place.name!r} cannot be read") from error
    with np.errstate(over="ignore"):  # a long double may become infinite: `canonical` raises
        return np.ascontiguousarray(array.astype(_plain(array.dtype), copy=False))


def _check_header(file: IO[bytes], file_size: int, place: Place) -> None:
    """Compare shape and type of the array's header with the member's size."""
    try:
        shape, _, dtype = HEADER_READERS[npy.read_magic(file)](file)
    except Exception as error:  # Python parses it, which can raise many exceptions
        raise NotParseable(f"array {place.name!r} has no valid npy header") from error
    if dtype.kind not in READABLE_KINDS:
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
