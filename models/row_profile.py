"""What the rows were that a model learned from: per column its range, moments, levels, gaps.

The data set may be deleted, and has the held-out rows as well: a model's card tells of its own.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from models.features import Columns, FeatureEncoder, convert, level_text
from models.targets import present

MAX_LEVELS = 50  # a card is for people
_BLOCK_ROWS = 2**12  # of a tensor column that are made float64 at once


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """One column; statistics leave missing values out, and `std` divides by their number.

    Instants are in UTC, as text. `levels` are the most frequent ones, each with its rows.
    """

    name: str
    role: Literal["feature", "target"]
    type: str
    missing: int = 0
    shape: tuple[int, ...] | None = None
    min: float | str | None = None
    max: float | str | None = None
    mean: float | None = None
    std: float | None = None
    levels: tuple[tuple[str, int], ...] | None = None
    num_levels: int | None = None


@dataclass(frozen=True, kw_only=True)
class RowProfile:
    """How many rows (lines of a text, windows of series) were learned from, how many held out.

    The columns are those of the rows that were learned from.
    """

    learned: int
    held_out: int
    columns: tuple[ColumnSummary, ...]


def summarise_columns(
    columns: Columns, encoder: FeatureEncoder, target: str, target_type: str
) -> tuple[ColumnSummary, ...]:
    """The features in their order, as they are read, and the target, as one of these types."""
    features = (
        _summary(f.name, "feature", f.type, convert(columns[f.name], stored, f.type))
        for f, stored in zip(encoder.features, encoder.stored, strict=True)
    )
    return *features, _summary(target, "target", target_type, columns[target])


def _summary(
    name: str, role: Literal["feature", "target"], kind: str, values: np.ndarray
) -> ColumnSummary:
    if kind == "tensor":
        shape, known = tuple(values.shape[1:]), values
    else:
        shape, known = None, values[present(values)]
    common = ColumnSummary(
        name=name, role=role, type=kind, missing=len(values) - len(known), shape=shape
    )
    return common if known.size == 0 else _with_statistics(common, known)


def _with_statistics(column: ColumnSummary, known: np.ndarray) -> ColumnSummary:
    match column.type:
        case "category" | "boolean":
            return _with_levels(column, known)
        case "datetime":
            first, last = (np.datetime_as_string(f(known), unit="s") for f in (np.min, np.max))
            return replace(column, min=f"{first}Z", max=f"{last}Z")
    low, high, mean, std = _moments(known)
    return replace(column, min=low, max=high, mean=mean, std=std)


def _with_levels(column: ColumnSummary, known: np.ndarray) -> ColumnSummary:
    values = known.astype(bool) if column.type == "boolean" else known
    counts = Counter(level_text(value) for value in values.tolist())
    levels = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return replace(column, levels=tuple(levels[:MAX_LEVELS]), num_levels=len(levels))


def _moments(values: np.ndarray) -> tuple[float, float, float, float]:
    """Least, greatest, mean and standard deviation; the mean first, then the squares about it."""
    mean = float(values.mean(dtype=np.float64))
    starts = range(0, len(values), _BLOCK_ROWS)
    blocks = (values[start : start + _BLOCK_ROWS] for start in starts)
    squares = sum(float(np.square(np.subtract(b, mean, dtype=np.float64)).sum()) for b in blocks)
    return float(values.min()), float(values.max()), mean, math.sqrt(squares / values.size)
