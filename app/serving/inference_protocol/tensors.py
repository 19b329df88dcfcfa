"""Converts bytes or JSON of the protocol's data types to arrays, and back.

Binary tensors are little-endian, row-major, without padding. Arrays share the memory of the body.
BYTES are texts, each after its length in 4 bytes.
"""

import struct
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from app.schemas.inference_protocol import Datatype
from core.exceptions import Invalid
from core.inputs.values import blocks, check_types, flatten, read_numbers

BYTES: Datatype = "BYTES"
BOOL: Datatype = "BOOL"
DTYPES: dict[Datatype, np.dtype] = {
    "UINT8": np.dtype("<u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("<i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
NUMBERS = tuple(DTYPES)
LENGTH = struct.Struct("<I")


Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """An input. Its values are numbers, booleans, or objects (str or None) for BYTES."""

    name: str
    datatype: Datatype
    values: np.ndarray
    path: str  # JSON pointer

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def invalid(self, message: str, row: int | None = None) -> Invalid:
        """An exception about this tensor. Rows count from 0."""
        where = f"tensor {self.name!r}" + ("" if row is None else f", row {row},")
        return Invalid([(self.path, f"{where} {message}")])


def from_bytes(data: memoryview, datatype: Datatype, shape: Shape, path: str) -> np.ndarray:
    """The array in this memory. Only texts are copied.

    Raises:
        Invalid: the number of bytes does not fit the shape, or a value is wrong.
    """
    if datatype == BYTES:
        return _texts(data, prod(shape), path).reshape(shape)
    dtype = np.dtype(np.uint8) if datatype == BOOL else DTYPES[datatype]
    expected = prod(shape) * dtype.itemsize
    if len(data) != expected:
        message = f"{datatype} of shape {list(shape)} takes {expected} bytes, not {len(data)}"
        raise Invalid([(f"{path}/parameters/binary_data_size", message)])
    values = np.frombuffer(data, dtype).reshape(shape)
    if datatype != BOOL:
        return values
    if (values > 1).any():
        raise Invalid([(path, "each byte of BOOL must be 0 or 1")])
    return values.view(np.bool_)


def from_json(data: object, datatype: Datatype, shape: Shape, path: str) -> np.ndarray:
    """The array of row-major values, flat or nested as in the shape. Null is a missing value.

    Raises:
        Invalid: the shape is wrong, or a value does not have the data type.
    """
    flat = _flat(data, shape)
    if flat is None:
        message = f"must have {prod(shape)} values, flat or nested as in the shape {list(shape)}"
        raise Invalid([(f"{path}/data", message)])
    return _typed(flat, datatype, f"{path}/data").reshape(shape)


def to_bytes(values: np.ndarray) -> bytes:
    """The bytes of an array: texts after their lengths, other values as in memory."""
    if values.dtype != object:
        return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    texts = [text.encode() for text in values.ravel().tolist()]
    return b"".join(part for text in texts for part in (LENGTH.pack(len(text)), text))


def datatype_of(values: np.ndarray) -> str:
    """The protocol's data type of an array."""
    if values.dtype == object:
        return BYTES
    if values.dtype.kind == "i":
        return f"INT{8 * values.itemsize}"
    return BOOL if values.dtype == bool else f"FP{8 * values.itemsize}"


def _flat(data: object, shape: Shape) -> list[Any] | None:
    if not isinstance(data, list):
        return None
    is_nested = bool(data) and isinstance(data[0], list)
    flat = flatten([data], shape) if is_nested else data
    return flat if flat is not None and len(flat) == prod(shape) else None


def _typed(flat: list[Any], datatype: Datatype, path: str) -> np.ndarray:
    def place(i: int) -> str:
        return f"{path}/{i}"

    if datatype == BYTES:
        check_types(flat, place, {str, type(None)}, "must be a string")
        return np.array([*flat, None], dtype=object)[:-1]  # None prevents fixed-size text
    if datatype == BOOL:
        check_types(flat, place, {bool}, "must be true or false")
        return np.array(flat, dtype=bool)
    values = blocks(read_numbers, flat, place)
    dtype = DTYPES[datatype]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # may be infinite in FP16: refused later
            return values.astype(dtype)
    limits: Any = np.iinfo(dtype)
    is_right = (values >= limits.min) & (values <= limits.max) & (values == np.floor(values))
    if not is_right.all():
        message = f"must be an integer from {limits.min} to {limits.max} ({datatype})"
        raise Invalid([(place(int(np.argmin(is_right))), message)])
    return values


def _texts(data: memoryview, count: int, path: str) -> np.ndarray:
    """The `count` texts in these bytes."""
    texts: list[str] = []
    position = 0
    try:
        while position < len(data) and len(texts) <= count:
            start = position + LENGTH.size
            position = start + LENGTH.unpack_from(data, position)[0]
            texts.append(str(data[start:position], "utf-8"))
    except (struct.error, UnicodeDecodeError):
        message = f"element {len(texts)} of BYTES is not a length in 4 bytes and a text in UTF-8"
        raise Invalid([(path, message)]) from None
    if position != len(data) or len(texts) != count:
        message = f"must have {count} texts for its shape, each after its length, and nothing else"
        raise Invalid([(path, message)])
    return np.array([*texts, None], dtype=object)[:-1]
