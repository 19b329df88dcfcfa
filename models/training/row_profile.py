"""A summary of the rows that a model learned from: range, moments and levels of each column.

The model's card stores it, because the data set may be deleted, and also has the held-out rows.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from models.features.columns import Columns, convert, level_text
from models.features.feature_encoder import FeatureEncoder
from models.features.targets import present

MAX_LEVELS = 50  # of a feature: more are not readable in a card
_BLOCK_ROWS = 2**12  # of a tensor column that are converted to float64 at once


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """One column. Statistics ignore missing values; `std` divides by the number of values.

    Args:
        min, max: datetimes as text in UTC.
        median: of numbers a value that occurs: of two middle ones the lower. None if the rows were
            read in blocks.
        levels: the most frequent levels, each with its number of rows. For a target all classes;
            a class that only held-out rows have counts 0.
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
    median: float | None = None
    levels: tuple[tuple[str, int], ...] | None = None
    num_levels: int | None = None


@dataclass(frozen=True, kw_only=True)
class RowProfile:
    """Numbers of rows (windows of series, lines of a text) by purpose.

    No row of a table is counted twice. Windows of series that calibrated a first fit also count as
    learned where a second fit learns from them.

    Args:
        learned: rows that weights were fitted to; a refit adds those that chose the epoch.
        stopping: rows that only chose the epoch.
        calibration: rows that calibrated the predictions.
        held_out: rows that were scored.
        columns: summaries of the learned rows.
        described: the number of rows that `columns` summarises, if it is not `learned`: of series
            all learned steps, also those that windows only begin with.
    """

    learned: int
    stopping: int
    calibration: int
    held_out: int
    columns: tuple[ColumnSummary, ...]
    described: int | None = None


def summarise_columns(
    columns: Columns,
    encoder: FeatureEncoder,
    target: str,
    target_type: str,
    classes: Sequence[str | float | bool] = (),
) -> tuple[ColumnSummary, ...]:
    """Summaries of the features in their order, then of the target.

    Args:
        target_type: the type that the target is read as.
        classes: all classes of the target, also those without a row here.
    """
    features = (
        _summary(f.name, "feature", f.type, convert(columns[f.name], stored, f.type))
        for f, stored in zip(encoder.features, encoder.stored, strict=True)
    )
    summary = _summary(target, "target", target_type, columns[target])
    if classes:
        counts = Counter(dict.fromkeys(map(level_text, classes), 0))
        counts.update(_count(columns[target], target_type))
        summary = replace(summary, levels=by_frequency(counts), num_levels=len(counts))
    return *features, summary


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
        case "text":
            return column
        case "datetime":
            first, last = (np.datetime_as_string(f(known), unit="s") for f in (np.min, np.max))
            return replace(column, min=f"{first}Z", max=f"{last}Z")
    low, high, mean, std = _moments(known)
    median = _median(known) if column.type == "number" else None
    return replace(column, min=low, max=high, mean=mean, std=std, median=median)


def _median(values: np.ndarray) -> float:
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def _with_levels(column: ColumnSummary, known: np.ndarray) -> ColumnSummary:
    levels = by_frequency(_count(known, column.type))
    return replace(column, levels=levels[:MAX_LEVELS], num_levels=len(levels))


def _count(known: np.ndarray, kind: str) -> Counter[str]:
    values = known.astype(bool) if kind == "boolean" else known
    return Counter(level_text(value) for value in values.tolist())


def by_frequency(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    """The levels with their numbers of rows, the most frequent first."""
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _moments(values: np.ndarray) -> tuple[float, float, float, float]:
    """Least, greatest, mean and standard deviation, in two passes."""
    mean = float(values.mean(dtype=np.float64))
    starts = range(0, len(values), _BLOCK_ROWS)
    blocks = (values[start : start + _BLOCK_ROWS] for start in starts)
    squares = sum(float(np.square(np.subtract(b, mean, dtype=np.float64)).sum()) for b in blocks)
    return float(values.min()), float(values.max()), mean, math.sqrt(squares / values.size)
