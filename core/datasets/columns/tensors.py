"""Tensors: each row holds an array of numbers. All have one shape, none is missing."""

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from core.datasets.columns.numbers import FLOAT32_MAX
from core.datasets.columns.place import Column, Place

MAX_DIMENSIONS = 8
BLOCK_BYTES = 2**24  # checked at a time, to bound the memory


def is_tensor(type_: pa.DataType) -> bool:
    """Whether the type is a fixed-shape tensor or fixed-size list of integers or floats."""
    if not isinstance(type_, pa.FixedShapeTensorType | pa.FixedSizeListType):
        return False
    return pa.types.is_integer(type_.value_type) or pa.types.is_floating(type_.value_type)


def is_fixed_shape(type_: pa.DataType) -> "TypeGuard[pa.FixedShapeTensorType[Any]]":
    """Whether the type is a fixed-shape tensor, the canonical form."""
    return isinstance(type_, pa.FixedShapeTensorType)


def from_numpy(array: np.ndarray) -> "pa.Array[Any]":
    """An Arrow array of tensors from numbers or booleans with the rows on the first axis."""
    if array.dtype == bool:
        array = array.astype(np.uint8)
    contiguous = np.ascontiguousarray(array)
    tensors: Any = pa.FixedShapeTensorArray
    result: pa.Array[Any] = tensors.from_numpy_ndarray(contiguous)
    return result


def to_numpy(column: Column) -> np.ndarray:
    """A copy of the whole column, rows on the first axis."""
    return np.concatenate(list(_chunks(column)))


def values(column: Column) -> Column:
    """All numbers of a canonical column in one dimension.

    float16 becomes float32, because Arrow does not compute in float16.
    """
    flat: Column = pa.chunked_array([_storage(chunk).flatten() for chunk in column.chunks])
    return flat.cast(pa.float32()) if pa.types.is_float16(flat.type) else flat


def blocks(column: Column) -> Iterator[np.ndarray]:
    """The column's numbers in arrays of shape (some rows, values per row)."""
    for chunk in _chunks(column):
        flat = chunk.reshape(len(chunk), -1)
        step = max(1, BLOCK_BYTES // max(1, flat[:1].nbytes))
        for start in range(0, len(flat), step):
            yield flat[start : start + step]


def checked(column: Column, place: Place) -> Column:
    """The column in canonical form. Raises `Invalid` for the first row with a wrong number."""
    column = _canonical(column, place)
    shape = list(column.type.shape)
    if 0 in shape or len(shape) > MAX_DIMENSIONS:
        raise place.invalid(
            f"has rows of shape {shape}: give 1 to {MAX_DIMENSIONS} axes, none of them empty"
        )
    first = 0
    for block in blocks(column):
        row = _first_bad_row(block)
        if row is not None:
            raise place.invalid(
                "holds NaN, infinity or a number outside float32: a tensor needs every value",
                first + row,
            )
        first += len(block)
    return column


def _canonical(column: Column, place: Place) -> Column:
    """The column as fixed-shape tensors with the axes in order, and without empty chunks.

    A stream may hold empty batches, but Arrow cannot make a tensor array of 0 rows.

    Raises:
        Invalid: a value is missing.
    """
    chunks: list[Any] = [chunk for chunk in column.chunks if len(chunk)]
    if any(c.null_count or _storage(c).flatten().null_count for c in chunks):
        raise place.invalid("lacks values: a tensor needs every one")
    if is_fixed_shape(column.type) and not column.type.permutation:
        kept: Column = pa.chunked_array(chunks)
        return kept
    if not is_fixed_shape(column.type):
        type_: Any = pa.fixed_shape_tensor(column.type.value_type, (column.type.list_size,))
        return pa.chunked_array([pa.ExtensionArray.from_storage(type_, c) for c in chunks], type_)
    return pa.chunked_array([from_numpy(c.to_numpy_ndarray()) for c in chunks])


def _storage(chunk: Any) -> Any:
    return chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk


def _chunks(column: Column) -> Iterator[np.ndarray]:
    """Each chunk as a view of Arrow's memory."""
    for chunk in column.chunks:
        tensor: Any = chunk
        yield tensor.to_numpy_ndarray()


def _first_bad_row(values: np.ndarray) -> int | None:
    if values.dtype.kind != "f":
        return None
    if values.dtype.itemsize > 4:
        good = (np.abs(values) <= FLOAT32_MAX).all(axis=1)  # also false for NaN
    else:
        good = np.isfinite(values).all(axis=1)
    return None if good.all() else int(np.argmin(good))
