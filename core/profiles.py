"""What is known of a column without its rows: type, range, moments, levels.

Missing values are left out. `std` divides by the number of values (the population's). `levels` has
the most frequent first and equally frequent ones in alphabetical order, at most 100; `num_levels`
counts all.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.columns import Column, tensors
from models.features import ColumnProfile

BLOCK_ROWS = 2**20
MAX_LEVELS = 100
MAX_LEVEL_LENGTH = 256  # characters; a longer string is prose
MEAN_PROSE_LENGTH = 32  # many different strings that are longer than this on average, too


def profile(name: str, column: Column, *, is_text: bool = False) -> ColumnProfile:
    """The profile of a canonical column; `is_text`: strings are prose, whatever they hold."""
    type_, missing = column.type, column.null_count
    if tensors.is_fixed_shape(type_):
        m = _tensor_moments(column)
        return ColumnProfile(
            name=name,
            type="tensor",
            shape=tuple(type_.shape),
            min=m.min,
            max=m.max,
            mean=m.mean,
            std=m.std,
        )
    if pa.types.is_timestamp(type_):
        return ColumnProfile(name=name, type="datetime", missing=missing)
    if pa.types.is_large_string(type_):
        return _profile_strings(name, column, is_text=is_text)
    kind = "boolean" if pa.types.is_boolean(type_) else "number"
    if missing == len(column):
        return ColumnProfile(name=name, type=kind, missing=missing)
    m = _moments(column)
    return ColumnProfile(
        name=name, type=kind, missing=missing, min=m.min, max=m.max, mean=m.mean, std=m.std
    )


def _profile_strings(name: str, column: Column, *, is_text: bool) -> ColumnProfile:
    missing = column.null_count
    counts = pc.value_counts(column.drop_null())
    if is_text or _is_prose(counts.field("values")):
        return ColumnProfile(name=name, type="text", missing=missing)
    table = pa.table({"level": counts.field("values"), "count": counts.field("counts")})
    first = table.sort_by([("count", "descending"), ("level", "ascending")]).slice(0, MAX_LEVELS)
    return ColumnProfile(
        name=name,
        type="category",
        missing=missing,
        levels=tuple(str(level) for level in first.column("level").to_pylist()),
        num_levels=len(counts),
    )


def _is_prose(levels: Any) -> bool:
    lengths: Any = pc.utf8_length(levels)
    longest, mean = pc.max(lengths).as_py() or 0, pc.mean(lengths).as_py() or 0.0
    return bool(
        longest > MAX_LEVEL_LENGTH or (len(levels) > MAX_LEVELS and mean > MEAN_PROSE_LENGTH)
    )


@dataclass(frozen=True)
class _Moments:
    min: float
    max: float
    mean: float
    std: float


def _moments(column: Column) -> _Moments:
    """In blocks, as what takes a byte in the column takes 8 here: mean first, then the squares."""
    present = len(column) - column.null_count
    mean = sum(float(block.sum()) for block in _floats(column)) / present
    variance = sum(float(((block - mean) ** 2).sum()) for block in _floats(column)) / present
    return _Moments(
        min(float(block.min()) for block in _floats(column)),
        max(float(block.max()) for block in _floats(column)),
        mean,
        math.sqrt(variance),
    )


def _floats(column: Column) -> Iterator[np.ndarray]:
    """The values that are there, some rows at a time."""
    for start in range(0, len(column), BLOCK_ROWS):
        block = column.slice(start, BLOCK_ROWS).drop_null()
        if len(block):
            yield block.cast(pa.float64(), safe=False).to_numpy()


def _tensor_moments(column: Column) -> _Moments:
    """Over all values of all rows, in blocks: mean first, then the squares about it."""
    blocks = list(tensors.blocks(column))  # views, no copies
    count = sum(block.size for block in blocks)
    mean = sum(float(block.sum(dtype=np.float64)) for block in blocks) / count
    deviations = (np.subtract(block, mean, dtype=np.float64) for block in blocks)
    variance = sum(float((d**2).sum()) for d in deviations) / count
    return _Moments(
        min(float(block.min()) for block in blocks),
        max(float(block.max()) for block in blocks),
        mean,
        math.sqrt(variance),
    )
