"""The part of a model's card that needs the training: rows, learning curve, weights.

The card stores a summary of the rows (range, moments and levels of each column), because the data
set may be deleted, and also has the held-out rows. Scores and their chart data are among a
variant's metrics.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np
import torch

from models.config import Json
from models.features.columns import Columns, convert, level_text
from models.features.feature_encoder import FeatureEncoder
from models.features.targets import present
from models.features.weighted import by_frequency
from models.networks.pruning import signal_to_noise
from models.variant import Variant

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


@dataclass
class ColumnTotals:
    """What a column's blocks of rows had so far.

    Means and squares are merged as by Chan, Golub and LeVeque 1979 (*Updating formulae and a
    pairwise algorithm for computing sample variances*), so that no large numbers cancel.

    Args:
        most_counted: levels that are counted; later ones of more are not.
        count: of the values that `mean` and `squares`, the sum of squared deviations, are of.
    """

    name: str
    role: Literal["feature", "target"]
    type: str
    most_counted: float = math.inf
    missing: int = 0
    shape: tuple[int, ...] | None = None
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float | np.datetime64 | None = None
    high: float | np.datetime64 | None = None
    levels: Counter[str] = field(default_factory=Counter)

    def add(self, values: np.ndarray) -> np.ndarray:
        """Add the values of a block, in the type that the column is read as. Returns those that are
        not missing.
        """
        if self.type == "tensor":
            self.shape, known = tuple(values.shape[1:]), values
        else:
            known = values[present(values)]
        self.missing += len(values) - len(known)
        if not known.size or self.type == "text":
            return known
        if self.type in ("category", "boolean"):
            self._count_levels(known)
            return known
        low, high = known.min(), known.max()
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        if self.type == "number":
            self._add_moments(known)
        elif self.type == "tensor":
            for start in range(0, len(known), _BLOCK_ROWS):
                self._add_moments(known[start : start + _BLOCK_ROWS].astype(np.float64))
        return known

    @property
    def summary(self) -> ColumnSummary:
        common = ColumnSummary(
            name=self.name, role=self.role, type=self.type, missing=self.missing, shape=self.shape
        )
        if self.levels:
            levels = tuple((level, self.levels[level]) for level in by_frequency(self.levels))
            most = MAX_LEVELS if self.role == "feature" else len(levels)
            return replace(common, levels=levels[:most], num_levels=len(levels))
        if self.low is None or self.high is None:
            return common
        if isinstance(self.low, np.datetime64) and isinstance(self.high, np.datetime64):
            low, high = (np.datetime_as_string(v, unit="s") for v in (self.low, self.high))
            return replace(common, min=f"{low}Z", max=f"{high}Z")
        std = math.sqrt(self.squares / self.count)
        return replace(common, min=float(self.low), max=float(self.high), mean=self.mean, std=std)

    def _count_levels(self, known: np.ndarray) -> None:
        values = known.astype(bool) if self.type == "boolean" else known
        for level, rows in Counter(values.tolist()).items():
            text = level_text(level)
            if text in self.levels or len(self.levels) < self.most_counted:
                self.levels[text] += rows

    def _add_moments(self, known: np.ndarray) -> None:
        mean = float(known.mean(dtype=np.float64))
        squares = float(np.square(known - mean).sum())
        total, apart = self.count + known.size, mean - self.mean
        self.squares += squares + apart**2 * self.count * known.size / total
        self.mean += apart * known.size / total
        self.count = total


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
        _summarise(
            ColumnTotals(f.name, "feature", f.type), convert(columns[f.name], stored, f.type)
        )
        for f, stored in zip(encoder.features, encoder.stored, strict=True)
    )
    total = ColumnTotals(target, "target", target_type, levels=no_rows_yet(classes))
    return *features, _summarise(total, columns[target])


def no_rows_yet(classes: Sequence[str | float | bool]) -> Counter[str]:
    """Counts of classes, each without rows."""
    return Counter(dict.fromkeys(map(level_text, classes), 0))


def _summarise(total: ColumnTotals, values: np.ndarray) -> ColumnSummary:
    known = total.add(values)
    if total.type != "number" or not known.size:
        return total.summary
    middle = (len(known) - 1) // 2
    return replace(total.summary, median=float(np.partition(known, middle)[middle]))


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
    epochs = np.arange(len(history))
    scored = epochs[[epoch["held_out_log_likelihood"] is not None for epoch in history]]
    kept = set[int]()
    for numbers in (epochs, scored):  # evenly spread, with both ends
        count = min(len(numbers), MAX_EPOCHS // 2)
        kept.update(numbers[np.linspace(0, len(numbers) - 1, count).round().astype(int)].tolist())
    return [history[i] for i in sorted(kept)]


def describe_weights(variants: Mapping[float, Variant]) -> Json | None:
    """Histogram of 20 log₁₀ |μ|/σ over all weights of the full posterior, in bins of 1 dB.

    `cuts` holds for each pruned variant the ratio below which its fraction of these weights lies.
    None for methods without a σ per weight. Source: Blundell et al. 2015, figure 3.
    """
    posterior = variants[0.0].state.mean_field
    if posterior is None:
        return None
    ratio = signal_to_noise(posterior).detach()  # a ratio of 0 counts as the least float32
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
