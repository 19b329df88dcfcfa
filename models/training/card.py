"""The part of a model's card that needs the training: rows, learning curve, weights.

The card stores a summary of the rows (range, moments and levels of each column), because the data
set may be deleted, and also has the held-out rows. Scores and their chart data are among a
variant's metrics.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import torch

from models.config import Json
from models.features.columns import Columns, convert, level_text
from models.features.feature_encoder import FeatureEncoder
from models.features.targets import present
from models.inference.bbb import BBBState
from models.posteriors.pruning import signal_to_noise
from models.posteriors.variant import Variant

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


MAX_EPOCHS = 200  # of a learning curve: a chart shows no more
_LEAST_DB, _MOST_DB = -60, 60  # the first and last bin also hold what is beyond


def describe_training(
    rows: RowProfile, history: Sequence[Json], variants: Mapping[float, Variant]
) -> Json:
    """The part of a card that is stored with the weights: tens of kilobytes at most."""
    return {
        "rows": asdict(rows),
        "learning_curve": thin(history),
        "signal_to_noise": describe_weights(variants),
    }


def thin(history: Sequence[Json]) -> list[Json]:
    """At most `MAX_EPOCHS` epochs, evenly spread, with the first and the last.

    Half of them are epochs at whose end the held-out rows were scored.
    """
    if len(history) <= MAX_EPOCHS:
        return list(history)
    all_ = list(range(len(history)))
    scored = [i for i in all_ if history[i]["held_out_log_likelihood"] is not None]
    kept = {*_some(all_, MAX_EPOCHS // 2), *_some(scored, MAX_EPOCHS // 2)}
    return [history[i] for i in sorted(kept)]


def _some(numbers: Sequence[int], most: int) -> list[int]:
    """At most `most` of the numbers, evenly spread, with both ends."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[i] for i in np.linspace(0, len(numbers) - 1, most).round().astype(int)]


def describe_weights(variants: Mapping[float, Variant]) -> Json | None:
    """Histogram of 20 log₁₀ |μ|/σ over all weights of the full posterior, in bins of 1 dB.

    `cuts` holds for each pruned variant the ratio below which its fraction of these weights lies.
    None for methods without a σ per weight. Source: Blundell et al. 2015, figure 3.
    """
    state = variants[0.0].state
    if not isinstance(state, BBBState):
        return None
    ratio = signal_to_noise(state.posterior).detach()  # a ratio of 0 counts as the least float32
    ratios = (20 * ratio.clamp_min(torch.finfo(torch.float32).tiny).log10()).sort().values
    bins = (ratios.floor().long() - _LEAST_DB).clamp(0, _MOST_DB - _LEAST_DB - 1)
    counts = bins.bincount(minlength=_MOST_DB - _LEAST_DB)
    used = counts.nonzero().flatten()
    first, last = int(used[0]), int(used[-1])
    places = {prune: round(prune * len(ratios)) for prune in sorted(variants) if prune > 0}
    return {
        "unit": "dB",
        "first": _LEAST_DB + first,
        "counts": counts[first : last + 1].tolist(),
        "cuts": [
            {"prune": prune, "at": float(ratios[min(place, len(ratios) - 1)])}
            for prune, place in places.items()
        ],
    }
