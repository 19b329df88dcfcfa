"""NumPy's npz: each array a column, its first axis the rows; never unpickled."""

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from core.columns import MAX_TENSOR_DIMENSIONS, check_names, escape
from core.exceptions import Invalid, NotParseable
from core.formats.limits import check_size

READABLE_KINDS = (
    "biufUM"  # booleans, integers, floats, strings, datetimes: nothing that is an object
)


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file whose arrays have the same number of rows.

    What each array claims to be is compared with what the archive holds before memory is taken.

    Raises:
        NotParseable: when it is not such an archive or an array is not what its header claims.
        Invalid: for arrays that cannot be columns.
        TooLarge: naming the limit.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
            check_names(list(members))
            total = sum(member.file_size for member in members.values())
            check_size(total, max_bytes, "the npz file")
            arrays = {name: _read(archive, member, name) for name, member in members.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise NotParseable(f"the file is not an npz archive: {error}") from error
    _check_rows(arrays)
    return pa.table({name: _column(array) for name, array in arrays.items()})


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        if not member.filename.endswith(".npy"):
            raise NotParseable(
                f"the npz file holds {member.filename[:80]!r}: only arrays (.npy) may be in it"
            )
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise Invalid([(f"/columns/{escape(name)}", f"the name {name!r} occurs twice")])
        members[name] = member
    return members


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> np.ndarray:
    with archive.open(member) as file:
        _check_header(file, member.file_size, name)
    with archive.open(member) as file:
        try:
            array = npy.read_array(file, allow_pickle=False)
        except ValueError as error:
            raise NotParseable(f"array {name!r} cannot be read: {error}") from error
    return np.ascontiguousarray(array.astype(_native(array.dtype), copy=False))


def _check_header(file: IO[bytes], file_size: int, name: str) -> None:
    """Compare the claimed shape and type with the bytes that are there."""
    try:
        version = npy.read_magic(file)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, _, dtype = reader(file)
    except (ValueError, KeyError, EOFError) as error:
        raise NotParseable(f"array {name!r} has no valid npy header: {error}") from error
    path = f"/columns/{escape(name)}"
    if dtype.kind not in READABLE_KINDS:
        raise Invalid(
            [
                (
                    path,
                    f"array {name!r} has the type {dtype}: give numbers, booleans, strings or times",
                )
            ]
        )
    if not 1 <= len(shape) <= 1 + MAX_TENSOR_DIMENSIONS:
        raise Invalid(
            [(path, f"array {name!r} has shape {list(shape)}: its first axis is the rows")]
        )
    claimed = math.prod(shape) * dtype.itemsize
    present = file_size - file.tell()
    if claimed != present:
        raise NotParseable(
            f"array {name!r} claims {claimed} bytes, and {present} are there: the file is damaged"
        )


def _native(dtype: np.dtype) -> np.dtype:
    """This machine's byte order, and no float wider than 64 bits."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    if dtype.kind == "M":
        return np.dtype("datetime64[us]")
    return dtype.newbyteorder("=")


def _check_rows(arrays: dict[str, np.ndarray]) -> None:
    (first, array), *_ = arrays.items()
    for name, other in arrays.items():
        if len(other) != len(array):
            message = f"array {name!r} has {len(other)} rows, {first!r} has {len(array)}"
            raise Invalid([(f"/columns/{escape(name)}", f"{message}: give all the same number")])
    if len(array) == 0:
        raise Invalid([("/columns", "the arrays have no rows: give at least one")])


def _column(array: np.ndarray) -> pa.Array:
    if array.ndim == 1:
        return pa.array(array.tolist() if array.dtype.kind == "U" else array)
    if array.dtype.kind not in "biuf":
        raise Invalid([("/columns", f"tensors of type {array.dtype} are not supported")])
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    return pa.FixedShapeTensorArray.from_numpy_ndarray(array)
