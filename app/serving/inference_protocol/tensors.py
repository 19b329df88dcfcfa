"""The protocol's data types: arrays from bytes or JSON, and back.

Binary tensors are little-endian, row-major, without padding. Their numbers are looked at where they
came in, never as Python objects. BYTES are texts, each after its length in 4 bytes.
"""

import struct
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from app.schemas.inference_protocol import Datatype
from app.serving.values import blocks, check_types, flatten, read_numbers
from core.exceptions import Invalid

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
    """An input as it came: numbers, booleans, or objects (str, None) for BYTES."""

    name: str
    datatype: Datatype
    values: np.ndarray
    path: str  # JSON pointer

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def invalid(self, message: str, row: int | None = None) -> Invalid:
        """The exception that says what is wrong with it; rows count from 0."""
        where = f"tensor {self.name!r}" + ("" if row is None else f", row {row},")
        return Invalid([(self.path, f"{where} {message}")])


def from_bytes(data: memoryview, datatype: Datatype, shape: Shape, path: str) -> np.ndarray:
    """The array in this memory, not copied.

    Raises:
        Invalid: if there are more or fewer bytes than the shape asks for, or other values.
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
        raise Invalid([(path, "a byte of BOOL is 0 or 1")])
    return values.view(np.bool_)


def from_json(data: object, datatype: Datatype, shape: Shape, path: str) -> np.ndarray:
    """The array of row-major values, flat or nested as the shape says; null is a missing value.

    Raises:
        Invalid: at the first value that is not of the data type, or if the shape is another.
    """
    flat = _flat(data, shape)
    if flat is None:
        message = f"must be {prod(shape)} values, flat or nested as the shape {list(shape)} says"
        raise Invalid([(f"{path}/data", message)])
    return _typed(flat, datatype, f"{path}/data").reshape(shape)


def to_bytes(values: np.ndarray) -> bytes:
    """Texts with their lengths; anything else as it lies in memory."""
    if values.dtype != object:
        return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    texts = [text.encode() for text in values.ravel().tolist()]
    return b"".join(part for text in texts for part in (LENGTH.pack(len(text)), text))


def datatype_of(values: np.ndarray) -> str:
    """The protocol's word for the array's type."""
    if values.dtype == object:
        return BYTES
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
        return np.array([*flat, None], dtype=object)[:-1]  # None: never fixed-size text
    if datatype == BOOL:
        check_types(flat, place, {bool}, "must be true or false")
        return np.array(flat, dtype=bool)
    values = blocks(read_numbers, flat, place)
    dtype = DTYPES[datatype]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # infinite in FP16, which is refused later
            return values.astype(dtype)
    limits: Any = np.iinfo(dtype)
    is_right = (values >= limits.min) & (values <= limits.max) & (values == np.floor(values))
    if not is_right.all():
        message = f"must be an integer from {limits.min} to {limits.max} ({datatype})"
        raise Invalid([(place(int(np.argmin(is_right))), message)])
    return values


def _texts(data: memoryview, count: int, path: str) -> np.ndarray:
    """`count` texts, which take all of the bytes."""
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
        message = f"its bytes are not the {count} texts, each after its length, that its shape says"
        raise Invalid([(path, message)])
    return np.array([*texts, None], dtype=object)[:-1]
