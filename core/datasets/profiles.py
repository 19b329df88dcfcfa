"""What is known of a column without its rows: type, range, moments, levels.

Missing values are left out. `std` divides by the number of values (the population's). `levels` has
the most frequent first and equally frequent ones in alphabetical order, at most 100; `num_levels`
counts all.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column, tensors
from models.features.columns import ColumnProfile

BLOCK_ROWS = 2**20
MAX_LEVELS = 100
MAX_LEVEL_LENGTH = 256  # characters; a longer string is prose
MEAN_PROSE_LENGTH = 32  # many different strings that are longer than this on average, too


def profile(name: str, column: Column, *, is_text: bool = False) -> ColumnProfile:
    """The profile of a canonical column; `is_text`: strings are prose, whatever they hold."""
    type_, missing = column.type, column.null_count
    if tensors.is_fixed_shape(type_):
        m = _moments(partial(tensors.blocks, column))
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
    m = _moments(partial(_floats, column))
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


def _moments(blocks: Callable[[], Iterable[np.ndarray]]) -> _Moments:
    """Over all values, in blocks that are made twice: mean first, then the squares about it."""
    seen = [(block.size, _sum(block), float(block.min()), float(block.max())) for block in blocks()]
    sizes, sums, least, most = zip(*seen, strict=True)
    count = sum(sizes)
    mean = sum(sums) / count
    deviations = (np.subtract(block, mean, dtype=np.float64) for block in blocks())
    variance = sum(_sum(deviation**2) for deviation in deviations) / count
    return _Moments(min(least), max(most), mean, math.sqrt(variance))


def _sum(block: np.ndarray) -> float:
    return float(block.sum(dtype=np.float64))


def _floats(column: Column) -> Iterator[np.ndarray]:
    """The values that are there, some rows at a time: a byte in the column takes 8 here."""
    for start in range(0, len(column), BLOCK_ROWS):
        block = column.slice(start, BLOCK_ROWS).drop_null()
        if len(block):
            yield block.cast(pa.float64(), safe=False).to_numpy()
