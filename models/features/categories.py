"""The encoders of categories, and of keys, which are too many for slots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Len
from jaxtyping import Int

from models.config.ranges import Flag, Text
from models.features import moments
from models.features.effects import MAX_KNOWN, LevelEffects, Targets, codes_of, places_of
from models.features.encodings import Encoding, Lookup, Slots
from models.features.expansion import Form
from models.features.moments import Weights

MAX_LEVELS = 256  # of one-hot slots: rarer levels share one
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
        weights: Weights | None = None,
    ) -> "CategoryEncoder":
        """Fit the slots to training values.

        Args:
            most: the most levels with a slot.
            coded: store codes, pool levels of fewer than three rows with unknown ones, and give
                missing values a slot of their own where training rows had them.
        """
        counts, absent = _counts(values, weights)
        least = _MIN_ROWS if coded else 1
        frequent = [level for level in _by_frequency(counts)[:most] if counts[level] >= least]
        levels = tuple(sorted(frequent))
        missing = coded and absent > 0
        pooled = sum(counts.values()) - sum(counts[level] for level in levels)
        rows = pooled + (0 if coded else absent)
        used = len(levels) + int(missing) + int(rows > 0)
        return cls(levels, missing=missing, coded=coded) if used > 1 else cls((), coded=coded)

    @classmethod
    def fit_effects(
        cls,
        values: np.ndarray,
        targets: Targets,
        *,
        most: int = MAX_LEVELS,
        weights: Weights | None = None,
    ) -> "CategoryEncoder":
        """Fit the slots, and where there are more than a few levels their effects on the targets.

        Args:
            most: the most levels with a slot.
            targets: standardised, as `models.features.effects.target_scores` makes them.
        """
        encoder = cls.fit(values, coded=True, most=most, weights=weights)
        counts, _ = _counts(values, weights)
        enough = sum(counts.values()) >= _ROWS_PER_LEVEL * len(counts)
        if len(counts) <= min(_FEW_LEVELS, most) or not enough:
            return encoder
        slots = set(encoder.levels)
        others = [level for level in _by_frequency(counts) if level not in slots]
        effects = LevelEffects.fit([*encoder.levels, *others], values, targets, weights)
        return cls(encoder.levels, missing=encoder.missing, coded=True, effects=effects)

    def marking(
        self, values: np.ndarray, rate: float, weights: Weights | None = None
    ) -> "CategoryEncoder":
        """Return a copy that marks new levels, if at most `rate` of new rows have one by chance.

        With n rows, of which n₁ have a level to themselves, the next row has a new level with a
        probability of about n₁/n (Good 1953). Of identifiers every row has one.
        """
        counts, _ = _counts(values, weights)
        alone = sum(count for count in counts.values() if count <= 1)
        if not counts or len(counts) > MAX_KNOWN or alone > rate * sum(counts.values()):
            return self
        others = sorted(counts.keys() - set(self.known_levels))
        return replace(self, marked=True, others=tuple(others))

    @property
    def known_levels(self) -> tuple[str, ...]:
        """The levels that the encoder distinguishes: those with a slot, then those with effects."""
        return self.levels if self.effects is None else self.effects.levels

    @property
    def new(self) -> int:
        """The code of a level that no training row had, if `marked`; else of any unknown one.

        Codes below are the places of known levels. The next code is of the `others`, the one after
        of a missing value.
        """
        return len(self.known_levels)

    @cached_property
    def _codes(self) -> Mapping[str | None, int]:
        others: dict[str | None, int] = dict.fromkeys(self.others, self.new + 1)
        return {**others, **places_of(self.known_levels), None: self.new + 2}

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
        slots = np.full(self.new + 3, float(self.num_slots - 1))
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
        found = [numbers.get(str(value), unseen) for value in values.tolist()]
        return np.array(found, dtype=np.int64)


def _counts(values: np.ndarray, weights: Weights | None) -> tuple[Mapping[str, float], float]:
    """The rows of each level, or their weight, and those of missing values."""
    counts = dict(moments.count(values, weights))
    absent = counts.pop(None, 0)
    return {str(level): rows for level, rows in counts.items()}, absent


def _by_frequency(counts: Mapping[str, float]) -> Sequence[str]:
    """The levels, the most frequent first; equally frequent ones in the order of their text."""
    return [level for level, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
