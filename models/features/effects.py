"""Categories with many levels: the effect of each level on the target, with a prior.

A one-hot slot per level would be too wide, and a level of few rows would hardly move its weights.
The effect a of a level on the standardised target has the prior N(0, τ²), so that its posterior
mean given n rows, whose targets deviate by d on average from the mean of all, is

    E[a] = n d / (n + σ²/τ²)

with the variance σ² of the targets within a level. Levels of few rows are shrunk to 0, and so is a
level that no training row had. Source: Robinson 1991, *That BLUP is a good thing*; Micci-Barreca
2001 for its use as an input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from annotated_types import Len
from jaxtyping import Float, Int, Num

from models.config.ranges import Number, Positive, Probability, Text
from models.features import moments
from models.features.encodings import encode
from models.features.moments import Weights
from models.features.quantiles import Distinct, NormalScore

MAX_KNOWN = 2**15  # levels whose effects are stored: some 2 MB of JSON
MAX_OUTPUTS = 8  # classes whose effects are inputs, the most frequent ones
FOLDS = 8
_LEAST_EFFECT = 1e-3  # least τ²/σ²; below it an effect is 3 % of the noise

Levels = Int[np.ndarray, "rows"]
Targets = Float[np.ndarray, "rows outputs"]


@dataclass(frozen=True)
class LevelEffects:
    """The effect of each known level on each output, and how certain it is.

    Args:
        levels: the known levels.
        effects: for each output its posterior means by level, in deviations of the target.
        certainty: for each level n / (n + σ²/τ²), averaged over the outputs: the share of the
            prior variance that its rows have removed.
        noise_ratio: for each output σ²/τ².
    """

    levels: Annotated[tuple[Text, ...], Len(1, MAX_KNOWN)]
    effects: Annotated[tuple[tuple[Number, ...], ...], Len(1, MAX_OUTPUTS)]
    certainty: tuple[Probability, ...]
    noise_ratio: tuple[Positive, ...]

    @classmethod
    def fit(
        cls,
        levels: Sequence[str],
        values: np.ndarray,
        targets: Targets,
        weights: Weights | None = None,
    ) -> "LevelEffects":
        """Fit the effects of levels to rows.

        Args:
            levels: those whose effects are stored; rows of others count for the mean only.
            values: the level of each row.
            targets: standardised, as `target_scores` makes them.
        """
        levels = levels[:MAX_KNOWN]
        codes = codes_of(places_of(levels), values)
        ratios = np.array(
            [_noise_ratio(codes, output, len(levels), weights) for output in targets.T]
        )
        folds = np.zeros(len(values), dtype=np.int64)
        table = _table(_Sums.of(codes, targets, folds, len(levels), weights).total(), ratios)
        return cls(
            tuple(levels),
            tuple(tuple(effects) for effects in table[:, :-1].T.tolist()),
            tuple(table[:, -1].tolist()),
            tuple(ratios.tolist()),
        )

    @property
    def width(self) -> int:
        """Number of inputs: an effect per output, and the certainty."""
        return len(self.noise_ratio) + 1

    @property
    def columns(self) -> Sequence[tuple[float, ...]]:
        """The inputs of the known levels: an effect on each output, and the certainty."""
        return (*self.effects, self.certainty)

    def by_fold(
        self, codes: Levels, targets: Targets, folds: Levels, weights: Weights | None = None
    ) -> Mapping[int, "LevelEffects"]:
        """The effects for the rows of each fold: those of the rows in other folds.

        With its own target in its input, a network would learn to copy it.
        """
        sums = _Sums.of(codes, targets, folds, len(self.levels), weights)
        ratios = np.asarray(self.noise_ratio)
        tables = {k: _table(sums.without(k), ratios) for k in np.unique(folds).tolist()}
        return {
            fold: replace(
                self,
                effects=tuple(tuple(effects) for effects in table[:, :-1].T.tolist()),
                certainty=tuple(table[:, -1].tolist()),
            )
            for fold, table in tables.items()
        }


def places_of(levels: Sequence[str]) -> Mapping[str | None, int]:
    """Return the place of each level."""
    return {level: i for i, level in enumerate(levels)}


def codes_of(places: Mapping[str | None, int], values: np.ndarray) -> Levels:
    """Return the place of each value, −1 for unknown and missing ones."""
    return np.array([places.get(value, -1) for value in values.tolist()], dtype=np.int64)


def target_scores(
    targets: Num[np.ndarray, "rows"], *, classes: bool, weights: Weights | None = None
) -> Targets:
    """Return what effects are effects on, each output with mean 0 and variance 1.

    A number gives its normal score, which no outlier dominates. Classes give an indicator each, the
    most frequent ones first; one class of two says all.

    Args:
        targets: numbers, or indices of classes.
    """
    if not classes:
        score = NormalScore.fit(Distinct.of(targets.astype(np.float64), weights))
        outputs = encode(score.line, targets).reshape(-1, 1)
    else:
        found, places = np.unique(targets, return_inverse=True)
        counts = np.bincount(places, weights)
        ordered = found[np.argsort(-counts, kind="stable")]
        chosen = ordered[:1] if len(ordered) <= 2 else ordered[:MAX_OUTPUTS]
        outputs = (targets[:, None] == chosen).astype(np.float64)
    if weights is None:
        centred, deviation = outputs - outputs.mean(0), outputs.std(0)
    else:
        centred = outputs - np.average(outputs, 0, weights)
        deviation = np.sqrt(np.average(centred**2, 0, weights))
    return centred / np.where(deviation > 0, deviation, 1.0)


@dataclass(frozen=True)
class _LevelSums:
    """Rows and sums of targets by level, and the mean target of all rows."""

    rows: Float[np.ndarray, "levels"]
    targets: Float[np.ndarray, "levels outputs"]
    mean: Float[np.ndarray, "outputs"]


@dataclass(frozen=True)
class _Sums:
    """Rows and sums of targets by level and fold; the last level collects those without a code."""

    rows: Float[np.ndarray, "levels folds"]
    targets: Float[np.ndarray, "outputs levels folds"]

    @classmethod
    def of(
        cls,
        codes: Levels,
        targets: Targets,
        folds: Levels,
        num_levels: int,
        weights: Weights | None,
    ) -> "_Sums":
        shape = num_levels + 1, int(folds.max(initial=0)) + 1
        cells = np.where(codes < 0, num_levels, codes) * shape[1] + folds
        size = shape[0] * shape[1]
        weighed = targets if weights is None else targets * weights[:, None]
        sums = [np.bincount(cells, output, size).reshape(shape) for output in weighed.T]
        rows = np.bincount(cells, weights, size).reshape(shape)
        return cls(rows.astype(float), np.stack(sums))

    def total(self) -> _LevelSums:
        return self._level_sums(self.rows.sum(1), self.targets.sum(2))

    def without(self, fold: int) -> _LevelSums:
        rows = self.rows.sum(1) - self.rows[:, fold]
        return self._level_sums(rows, self.targets.sum(2) - self.targets[:, :, fold])

    def _level_sums(self, rows: np.ndarray, targets: np.ndarray) -> _LevelSums:
        mean = targets.sum(1) / (rows.sum() or 1.0)
        return _LevelSums(rows[:-1], targets[:, :-1].T, mean)


def _table(
    sums: _LevelSums, ratios: Float[np.ndarray, "outputs"]
) -> Float[np.ndarray, "levels width"]:
    """The inputs of each level: its effect on each output, and the certainty."""
    counts = sums.rows[:, None]
    effects = (sums.targets - counts * sums.mean) / (counts + ratios)
    return np.column_stack([effects, (counts / (counts + ratios)).mean(1)])


def _noise_ratio(
    codes: Levels, target: Float[np.ndarray, "rows"], num_levels: int, weights: Weights | None
) -> float:
    """σ²/τ² by the moments of a one-way layout with random effects (Searle et al. 1992, §3.6).

    With n_l rows of L levels and N rows in all, the sums of squares within and between levels have
    the expectations (N − L) σ² and (L − 1) σ² + (N − Σ n_l²/N) τ².
    """
    known = codes >= 0
    codes, target, weights = codes[known], target[known], moments.part(weights, known)
    each = 1.0 if weights is None else weights
    counts = np.bincount(codes, weights, num_levels).astype(float)
    sums = np.bincount(codes, target * each, num_levels)
    total, levels = counts.sum(), (counts > 0).sum()
    means = sums / np.where(counts > 0, counts, 1)
    within = (np.square(target - means[codes]) * each).sum() / max(1.0, total - levels)
    between = (counts * np.square(means - moments.mean(target, weights))).sum()
    spread = (between - (levels - 1) * within) / max(1.0, total - np.square(counts).sum() / total)
    return float(np.clip(within / max(spread, _LEAST_EFFECT * within, 1e-12), 1e-6, 1e6))
