"""Profiles of columns: type, range, moments, levels.

Missing values are left out. `std` divides by the number of values (population). `levels` holds at
most 100, the most frequent first, equally frequent ones in alphabetical order; `num_levels` counts
all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column, tensors
from core.datasets.columns.booleans import to_bits
from models.features.columns import ColumnProfile

MAX_LEVELS = 100
MAX_LEVEL_LENGTH = 256  # characters; a column with a longer string is text
MEAN_PROSE_LENGTH = 32  # characters; so is one with over MAX_LEVELS strings of a longer mean


def profile(
    name: str, column: Column, *, is_text: bool = False, is_boolean: bool = False
) -> ColumnProfile:
    """The profile of a canonical column.

    Args:
        is_text: whether a column of strings is text whatever its values.
        is_boolean: whether a column of strings holds the words of yes and no; they are its levels.
    """
    type_, missing = column.type, column.null_count
    if tensors.is_fixed_shape(type_):
        moments = _moments(tensors.values(column))
        return ColumnProfile(name=name, type="tensor", shape=tuple(type_.shape), **moments)
    if pa.types.is_timestamp(type_):
        return ColumnProfile(name=name, type="datetime", missing=missing)
    if pa.types.is_large_string(type_) and is_boolean:
        return _profile_words(name, column)
    if pa.types.is_large_string(type_):
        return _profile_strings(name, column, is_text=is_text)
    kind = "boolean" if pa.types.is_boolean(type_) else "number"
    if missing == len(column):
        return ColumnProfile(name=name, type=kind, missing=missing)
    values = column.cast(pa.uint8()) if kind == "boolean" else column
    return ColumnProfile(name=name, type=kind, missing=missing, **_moments(values))


def within(profiles: Sequence[ColumnProfile], max_text: int) -> Sequence[ColumnProfile]:
    """The profiles with so few of the most frequent levels that these have at most `max_text`
    characters in all.
    """
    for most in (MAX_LEVELS, 20, 5, 1, 0):
        cut = [
            one if one.levels is None else replace(one, levels=one.levels[:most])
            for one in profiles
        ]
        if sum(len(level) for one in cut for level in one.levels or ()) <= max_text:
            return cut
    raise AssertionError("unreachable")


def _profile_strings(name: str, column: Column, *, is_text: bool) -> ColumnProfile:
    missing = column.null_count
    counts = pc.value_counts(column.drop_null())
    if is_text or _is_prose(counts.field("values")):
        return ColumnProfile(name=name, type="text", missing=missing, use=False)
    table = pa.table({"level": counts.field("values"), "count": counts.field("counts")})
    first = table.sort_by([("count", "descending"), ("level", "ascending")]).slice(0, MAX_LEVELS)
    return ColumnProfile(
        name=name,
        type="category",
        missing=missing,
        levels=tuple(str(level) for level in first.column("level").to_pylist()),
        num_levels=len(counts),
    )


def _profile_words(name: str, column: Column) -> ColumnProfile:
    """Levels as of categories, and the moments of 0 and 1."""
    levels = _profile_strings(name, column, is_text=False)
    bits = to_bits(column)
    moments = _moments(pa.chunked_array([bits[~np.isnan(bits)]]))
    return replace(levels, type="boolean", **moments)


def _is_prose(levels: Any) -> bool:
    lengths: Any = pc.utf8_length(levels)
    longest, mean = pc.max(lengths).as_py() or 0, pc.mean(lengths).as_py() or 0.0
    return bool(
        longest > MAX_LEVEL_LENGTH or (len(levels) > MAX_LEVELS and mean > MEAN_PROSE_LENGTH)
    )


def _moments(values: Column) -> dict[str, Any]:
    """`min`, `max`, `mean` and `std` of the values that are not missing."""
    ends = pc.min_max(values)
    found = (ends["min"], ends["max"], pc.mean(values), pc.stddev(values, ddof=0))
    return {
        name: float(value.as_py())
        for name, value in zip(("min", "max", "mean", "std"), found, strict=True)
    }
