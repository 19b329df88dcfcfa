"""The encoders of categories, and of keys, which are too many for slots.

A one-hot slot per level of a category with many levels would be too wide, and a level of few rows
would hardly move its weights. The effect of the level on the target is an input instead. The effect
a on the standardised target has the prior N(0, τ²), so that its posterior mean given n rows, whose
targets deviate by d on average from the mean of all, is

    E[a] = n d / (n + σ²/τ²)

with the variance σ² of the targets within a level. Levels of few rows are shrunk to 0, and so is a
level that no training row had. Source: Robinson 1991, *That BLUP is a good thing*; Micci-Barreca
2001 for its use as an input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Len
from jaxtyping import Float, Int, Num

from models.config.ranges import Flag, Number, Positive, Probability, Text
from models.features import weighted
from models.features.encodings import Encoding, Lookup, Slots, encode
from models.features.expansion import MAX_LEVELS, Distinct, Form, NormalScore
from models.features.weighted import Weights

MAX_KNOWN = 2**15  # levels whose effects are stored: some 2 MB of JSON
MAX_OUTPUTS = 8  # classes whose effects are inputs, the most frequent ones
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
        table = _Sums.of(codes, targets, folds, len(levels), weights).table(ratios)
        empty = cls(tuple(levels), (), (), tuple(ratios.tolist()))
        return empty._with_table(table)

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
        return {
            fold: self._with_table(sums.table(ratios, without=fold))
            for fold in np.unique(folds).tolist()
        }

    def _with_table(self, table: Float[np.ndarray, "levels width"]) -> "LevelEffects":
        effects = tuple(tuple(each) for each in table[:, :-1].T.tolist())
        return replace(self, effects=effects, certainty=tuple(table[:, -1].tolist()))


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
        distinct, places = np.unique(targets, return_inverse=True)
        counts = np.bincount(places, weights)
        ordered = distinct[np.argsort(-counts, kind="stable")]
        chosen = ordered[:1] if len(ordered) <= 2 else ordered[:MAX_OUTPUTS]
        outputs = (targets[:, None] == chosen).astype(np.float64)
    if weights is None:
        centred, deviation = outputs - outputs.mean(0), outputs.std(0)
    else:
        centred = outputs - np.average(outputs, 0, weights)
        deviation = np.sqrt(np.average(centred**2, 0, weights))
    return centred / np.where(deviation > 0, deviation, 1.0)


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

    def table(
        self, ratios: Float[np.ndarray, "outputs"], without: int | None = None
    ) -> Float[np.ndarray, "levels width"]:
        """The inputs of each level: its effect on each output, and the certainty.

        Args:
            without: a fold whose rows do not count.
        """
        rows, targets = self.rows.sum(1), self.targets.sum(2)
        if without is not None:
            rows = rows - self.rows[:, without]
            targets = targets - self.targets[:, :, without]
        mean, counts = targets.sum(1) / (rows.sum() or 1.0), rows[:-1, None]
        effects = (targets[:, :-1].T - counts * mean) / (counts + ratios)
        return np.column_stack([effects, (counts / (counts + ratios)).mean(1)])


def _noise_ratio(
    codes: Levels, target: Float[np.ndarray, "rows"], num_levels: int, weights: Weights | None
) -> float:
    """σ²/τ² by the moments of a one-way layout with random effects (Searle et al. 1992, §3.6).

    With n_l rows of L levels and N rows in all, the sums of squares within and between levels have
    the expectations (N − L) σ² and (L − 1) σ² + (N − Σ n_l²/N) τ².
    """
    known = codes >= 0
    codes, target, weights = codes[known], target[known], weighted.part(weights, known)
    each = 1.0 if weights is None else weights
    counts = np.bincount(codes, weights, num_levels).astype(float)
    sums = np.bincount(codes, target * each, num_levels)
    total, levels = counts.sum(), (counts > 0).sum()
    means = sums / np.where(counts > 0, counts, 1)
    within = (np.square(target - means[codes]) * each).sum() / max(1.0, total - levels)
    between = (counts * np.square(means - weighted.mean(target, weights))).sum()
    spread = (between - (levels - 1) * within) / max(1.0, total - np.square(counts).sum() / total)
    return float(np.clip(within / max(spread, _LEAST_EFFECT * within, 1e-12), 1e-6, 1e6))


# Levels above which effects are inputs. On generated tables of 40 to 200 levels of 10 to 20 rows
# each they took 4 to 20 % off the error; where levels had no effect it moved by chance alone.
_FEW_LEVELS = 16
MAX_KEYS = 100_000  # of series
_MIN_ROWS = 3  # of a level with a slot of its own in tables: fewer rows say little about a level
# Rows per level from which effects are fitted. A column of identifiers, with nearly as many levels
# as rows, says nothing about new rows.
_ROWS_PER_LEVEL = 1.5


@dataclass(frozen=True)
class CategoryEncoder:
    """One-hot over the known levels, with one more slot for missing and unknown levels.

    If no training value was missing or rare, no training row uses that slot, and its weights are
    not learned: under a prior they may raise the epistemic variance, in a point estimate they do
    not. With `marked`, `read` therefore tells which rows have a level that no training row had.
    `others` are the levels of training rows that are not among the known ones.

    With `missing`, a missing value has a slot of its own, after those of the levels. With `coded`,
    a row is stored as the number of its slot, which `Expansion` makes one-hot. With `effects`, the
    effects of all levels are inputs, too, and rare levels have a slot of their own before that of
    unknown ones.
    """

    levels: Annotated[tuple[Text, ...], Len(0, MAX_LEVELS)]
    kind: Literal["category"] = "category"
    missing: Flag = False
    coded: Flag = False
    effects: LevelEffects | None = None
    marked: Flag = False
    others: Annotated[tuple[Text, ...], Len(0, MAX_KNOWN)] = ()

    @classmethod
    def fit(
        cls,
        values: np.ndarray,
        *,
        coded: bool = False,
        most: int = MAX_LEVELS,
        targets: Targets | None = None,
        weights: Weights | None = None,
    ) -> "CategoryEncoder":
        """Fit the slots to training values, and effects on the targets where levels are many.

        Args:
            most: the most levels with a slot.
            coded: store codes, pool levels of fewer than three rows with unknown ones, and give
                missing values a slot of their own where training rows had them.
            targets: standardised, as `target_scores` makes them; without them there are no effects.
        """
        counts, absent = _counts(values, weights)
        least = _MIN_ROWS if coded else 1
        by_frequency, rows = weighted.by_frequency(counts), sum(counts.values())
        frequent = {level for level in by_frequency[:most] if counts[level] >= least}
        missing = coded and absent > 0
        pooled = rows - sum(counts[level] for level in frequent) + (0 if coded else absent)
        used = len(frequent) + int(missing) + int(pooled > 0)
        encoder = cls(tuple(sorted(frequent)), missing=missing, coded=coded)
        if used <= 1:
            encoder = cls((), coded=coded)
        enough = rows >= _ROWS_PER_LEVEL * len(counts)
        if not coded or targets is None or len(counts) <= min(_FEW_LEVELS, most) or not enough:
            return encoder
        slots = set(encoder.levels)
        others = [level for level in by_frequency if level not in slots]
        effects = LevelEffects.fit([*encoder.levels, *others], values, targets, weights)
        return replace(encoder, effects=effects)

    def marking(self, values: np.ndarray) -> "CategoryEncoder":
        """A copy that marks levels that no training row had; itself if these had too many."""
        levels = {str(value) for value in values.tolist() if value is not None}
        if len(levels) > MAX_KNOWN:
            return self
        return replace(self, marked=True, others=tuple(sorted(levels - set(self.known_levels))))

    @property
    def known_levels(self) -> tuple[str, ...]:
        """The levels that the encoder distinguishes: those with a slot, then those with effects."""
        return self.levels if self.effects is None else self.effects.levels

    @property
    def new(self) -> int:
        """The code of a level that no training row had, if `marked`; else of any unknown one.

        Codes below are the places of known levels. The next code is of the `others`, the one after
        is `absent`.
        """
        return len(self.known_levels)

    @property
    def absent(self) -> int:
        """The code of a missing value, which is the largest."""
        return self.new + 2

    @cached_property
    def _codes(self) -> Mapping[str | None, int]:
        others: dict[str | None, int] = dict.fromkeys(self.others, self.new + 1)
        return {**others, **places_of(self.known_levels), None: self.absent}

    def read(self, values: np.ndarray) -> Int[np.ndarray, "rows"]:
        """The code of each value."""
        get, new = self._codes.get, self.new
        return np.array([get(value, new) for value in values.tolist()], dtype=np.int64)

    @property
    def num_slots(self) -> int:
        known = len(self.levels) + int(self.missing) + int(self.effects is not None)
        return known + 1 if known else 0

    @property
    def form(self) -> Form:
        if not self.coded:
            return Form(plain=self.num_slots)
        plain = 0 if self.effects is None else self.effects.width
        return Form(plain=plain, slots=(self.num_slots,) if self.num_slots else ())

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The effects, and one-hot rows or with `coded` the number of each row's slot."""
        if not self.num_slots:
            return ()
        slots = np.full(self.absent + 1, float(self.num_slots - 1))
        slots[: self.new] -= 1  # of rare levels, which are known by their effects
        slots[: len(self.levels)] = np.arange(len(self.levels))
        if self.missing:
            slots[-1] = len(self.levels)
        if not self.coded:
            return (Slots(slots, self.num_slots),)
        effects = () if self.effects is None else self.effects.columns
        return *(Lookup(np.array([*each, 0.0, 0.0, 0.0])) for each in effects), Lookup(slots)

    def by_fold(
        self,
        values: np.ndarray,
        targets: Targets,
        folds: Int[np.ndarray, "rows"],
        weights: Weights | None = None,
    ) -> Mapping[int, "CategoryEncoder"]:
        """The encoders of each fold's rows, with the effects of the rows in other folds."""
        if self.effects is None:
            return dict.fromkeys(np.unique(folds).tolist(), self)
        known = codes_of(places_of(self.known_levels), values)
        found = self.effects.by_fold(known, targets, folds, weights)
        return {fold: replace(self, effects=effects) for fold, effects in found.items()}


@dataclass(frozen=True)
class KeyEncoder:
    """The number of a key among the sorted ones; for a key that no training row had, their count.

    The number is one compact column. It is no input of a network, which looks it up.
    """

    levels: Annotated[tuple[Text, ...], Len(1, MAX_KEYS)]
    kind: Literal["key"] = "key"

    @classmethod
    def fit(cls, values: np.ndarray) -> "KeyEncoder":
        return cls(tuple(sorted({str(value) for value in values.tolist()})))

    @property
    def form(self) -> Form:
        return Form(plain=1)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {level: i for i, level in enumerate(self.levels)}

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        return (Lookup(np.arange(len(self.levels) + 1.0)),)

    def read(self, values: np.ndarray) -> Int[np.ndarray, "rows"]:
        numbers, unseen = self._numbers, len(self.levels)
        codes = [numbers.get(str(value), unseen) for value in values.tolist()]
        return np.array(codes, dtype=np.int64)


def _counts(values: np.ndarray, weights: Weights | None) -> tuple[Mapping[str, float], float]:
    """The rows of each level, or their weight, and those of missing values."""
    counts = dict(weighted.count(values, weights))
    absent = counts.pop(None, 0)
    return {str(level): rows for level, rows in counts.items()}, absent
