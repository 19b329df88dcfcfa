"""Rows of a table that equal an earlier row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int

from core.datasets.columns import tensors
from core.datasets.columns.place import Column


def repeated_rows(columns: Sequence[Column]) -> Int[np.ndarray, "repeats"]:
    """The numbers of the rows that equal an earlier one in every column, in increasing order.

    Args:
        columns: canonical ones, of equally many rows. Missing values are equal.
    """
    hashes = row_hashes(columns)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    again = np.setdiff1d(np.arange(len(hashes)), first)
    if not len(again):
        return again
    earlier = first[place[again]]
    # Equal hashes may be chance, or a number that stands for a missing one.
    same = np.ones(len(again), bool)
    for column in columns:
        same &= _are_equal(column.take(again), column.take(earlier))
    return again[same]


def row_hashes(columns: Sequence[Column]) -> Int[np.ndarray, "rows"]:
    """A number of 64 bits per row; unequal rows have equal ones with a probability of 2⁻⁶⁴."""
    mixed = np.full(len(columns[0]), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        mixed ^= _bits(column)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def level_codes(column: Column) -> np.ndarray:
    """The level of each row as a number; a missing value is a level."""
    encoded: Any = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False))


def _are_equal(one: Column, other: Column) -> Bool[np.ndarray, "rows"]:
    if tensors.is_fixed_shape(one.type):
        rows = len(one), -1
        values = tensors.to_numpy(one).reshape(rows) == tensors.to_numpy(other).reshape(rows)
        return np.asarray(values.all(axis=1))
    both_missing: Any = pc.and_(pc.is_null(one), pc.is_null(other))
    same: Any = pc.equal(one, other)
    equal: Any = pc.or_(pc.fill_null(same, False), both_missing)
    return np.asarray(equal.to_numpy())


def _bits(column: Column) -> np.ndarray:
    if tensors.is_fixed_shape(column.type):
        flat = np.ascontiguousarray(tensors.to_numpy(column).reshape(len(column), -1))
        return np.array([hash(row.tobytes()) for row in flat], np.int64).view(np.uint64)
    if pa.types.is_large_string(column.type):
        return level_codes(column).astype(np.uint64)
    if pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type):
        numbers = column.cast(pa.int64(), safe=False).fill_null(pa.scalar(-(2**62), pa.int64()))
        return numbers.to_numpy().view(np.uint64)
    column = column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64) + 0.0  # −0 is 0
    return values.view(np.uint64)
