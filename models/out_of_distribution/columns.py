"""What the training rows had in each column, and how far outside of it a value is.

The score of a value is 0 inside. It is

* for a number or a date x beyond the range [l, h]: max(l − x, x − h) ÷ (h − l), its distance in
  ranges. An element of a tensor counts likewise, and the farthest one is the row's.
* for a number in a gap of the training values (`models.out_of_distribution.gaps`): its distance
  from the nearer end ÷ half the gap's width, beyond a margin.
* for a level that no training row had: 1 − c ÷ 2r, with the share c of training rows that have a
  level to themselves, which estimates the probability of a new level (Good 1953), and the
  false-alarm rate r; 0 where c > r, as for identifiers.
* for a missing value where none was missing: 1.

A row's score is the largest of its columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Len
from jaxtyping import Bool, Float

from models.config.ranges import Count, Flag, Number, Probability, Text
from models.features import moments
from models.features.moments import Weights
from models.features.numbers import microseconds
from models.out_of_distribution.gaps import MAX_GAPS, Gap, find_gaps
from models.out_of_distribution.robust_range import robust_range

MAX_LEVELS = 10  # that are listed: enough to see what is meant
_LEAST = 1e-6  # ranges beyond which a number is outside: rounding to float32 is no reason
_DAY = 86_400e6  # microseconds
_BLOCK = 32  # columns scored at once

NewLevels = Mapping[int, Bool[np.ndarray, "rows"]]
"""For each category, by its number: whether each row's level is new."""


@dataclass(frozen=True)
class SeenColumn:
    """What the training rows had in one column.

    Args:
        kind: the type that the column is read as.
        lowest, highest: of numbers, and of dates in microseconds since 1970, without stray values
            (`models.out_of_distribution.robust_range`); of all elements of tensors; None of other
            columns, and if all values are missing.
        missing: whether a value was missing.
        levels: of categories and booleans: the most frequent ones.
        num_levels: how many levels there were.
        new_level: the score of a level that no training row had.
        gaps: of numbers, those that are wide for the column; none in versions of earlier releases.
    """

    kind: Text
    lowest: Number | None = None
    highest: Number | None = None
    missing: Flag = False
    levels: Annotated[tuple[Text, ...], Len(0, MAX_LEVELS)] = ()
    num_levels: Count = 0
    new_level: Probability = 0.0
    gaps: Annotated[tuple[Gap, ...], Len(0, MAX_GAPS)] = ()

    @classmethod
    def fit(
        cls, kind: str, values: np.ndarray, rate: float, weights: Weights | None = None
    ) -> "SeenColumn":
        """Describe a column of training rows.

        Args:
            values: as the column's encoder reads them (`models.features.columns`).
            rate: the false-alarm rate.
            weights: of the rows, above 0; None if each is 1.
        """
        absent = bool(is_missing(kind, values).any())
        match kind:
            case "category":
                return cls._of_levels(moments.count(values, weights), rate, missing=absent)
            case "boolean":
                known = np.unique(values[~np.isnan(values)])
                levels = tuple("true" if value else "false" for value in known.tolist())
                return cls(kind, missing=absent, levels=levels, num_levels=len(levels), new_level=1)
            case "text":
                return cls(kind, missing=absent)
        if kind == "tensor":
            return cls(kind, float(values.min()), float(values.max()))
        lowest, highest = robust_range(as_numbers(kind, values), weights)
        gaps = find_gaps(values, rate) if kind == "number" else ()
        return cls(kind, lowest, highest, missing=absent, gaps=gaps)

    @classmethod
    def _of_levels(
        cls, counts: Mapping[str | None, float], rate: float, *, missing: bool
    ) -> "SeenColumn":
        known = {str(level): rows for level, rows in counts.items() if level is not None}
        frequent = sorted(known, key=lambda level: (-known[level], level))
        total = sum(known.values())
        alone = sum(rows for rows in known.values() if rows <= 1)
        likely = not total or alone > rate * total
        new_level = 0.0 if likely else 1 - 0.5 * alone / (rate * total)
        levels = tuple(frequent[:MAX_LEVELS])
        return cls("category", None, None, missing, levels, len(known), new_level)

    @property
    def width(self) -> float:
        """The unit of distances: the range; of a constant its size; of one date a day.

        0 of a constant 0 and if all values are missing: any other value is at a distance of 1.
        """
        if self.lowest is None or self.highest is None:
            return 0.0
        spread = self.highest - self.lowest
        constant = _DAY if self.kind == "datetime" else abs(self.lowest)
        return spread or constant


@dataclass(frozen=True)
class SeenColumns:
    """What the training rows had in every column."""

    columns: tuple[SeenColumn, ...]

    def row_scores(
        self, values: Sequence[np.ndarray], new_levels: NewLevels
    ) -> Float[np.ndarray, "rows"]:
        """The largest score among each row's columns.

        Args:
            values: of each column, as in `SeenColumn.fit`.
        """
        worst = np.zeros(len(values[0]) if values else 0)
        for _, scores in self._blocks(values, new_levels):
            np.maximum(worst, scores.max(1), out=worst)
        return worst

    def per_column(
        self, values: Sequence[np.ndarray], new_levels: NewLevels
    ) -> Float[np.ndarray, "rows columns"]:
        """The score of every value. The arguments are those of `row_scores`."""
        found = np.zeros((len(values[0]) if values else 0, len(self.columns)))
        for places, scores in self._blocks(values, new_levels):
            found[:, places] = scores
        return found

    def _blocks(
        self, values: Sequence[np.ndarray], new_levels: NewLevels
    ) -> Iterator[tuple[list[int], Float[np.ndarray, "rows some"]]]:
        """Numbers of columns, and their scores."""
        for start in range(0, len(self._numbers), _BLOCK):
            some = self._numbers[start : start + _BLOCK]
            matrix = np.array([as_numbers(self.columns[i].kind, values[i]) for i in some]).T
            yield some, self._of_numbers(some, matrix, np.isnan(matrix))
        for i, column in enumerate(self.columns):
            if column.kind in {"number", "datetime"}:
                continue
            yield [i], _of_other(column, values[i], new_levels.get(i))[:, None]

    @cached_property
    def _numbers(self) -> list[int]:
        """The columns of numbers and dates."""
        kinds = enumerate(column.kind for column in self.columns)
        return [i for i, kind in kinds if kind in {"number", "datetime"}]

    def _of_numbers(
        self, some: Sequence[int], matrix: np.ndarray, absent: np.ndarray
    ) -> Float[np.ndarray, "rows some"]:
        start = self._numbers.index(some[0])
        low, high, width, complete = self._known[:, start : start + len(some)]
        with np.errstate(over="ignore"):  # of numbers near the largest there are
            beyond = np.maximum(low - matrix, matrix - high)
        far = _in_ranges(beyond, width)
        scores = np.where(absent, complete, np.where(far > _LEAST, far, 0.0))
        for place, i in enumerate(some):
            for gap in self.columns[i].gaps:
                np.maximum(scores[:, place], gap.depth(matrix[:, place]), out=scores[:, place])
        return scores

    @cached_property
    def _known(self) -> Float[np.ndarray, "4 numbers"]:
        """Of the columns of numbers and dates: both ends, the width, 1 if no value was missing."""
        columns = [self.columns[i] for i in self._numbers]
        ends = ([np.nan if v is None else v for v in (c.lowest, c.highest)] for c in columns)
        rows = [(*e, c.width, not c.missing) for e, c in zip(ends, columns, strict=True)]
        return np.array(rows, np.float64).reshape(-1, 4).T


def _of_other(
    column: SeenColumn, values: np.ndarray, is_new: Bool[np.ndarray, "rows"] | None
) -> Float[np.ndarray, "rows"]:
    """The scores of a column that is neither of numbers nor of dates."""
    if column.kind == "tensor":
        return _of_tensors(column, values)
    scores = np.zeros(len(values))
    if column.kind == "boolean":
        unseen = [value for value in (0.0, 1.0) if _text(value) not in column.levels]
        is_new = np.isin(values, unseen)
    if is_new is not None:
        scores = np.where(is_new, column.new_level, scores)
    return scores if column.missing else np.where(is_missing(column.kind, values), 1.0, scores)


def _of_tensors(column: SeenColumn, values: np.ndarray) -> Float[np.ndarray, "rows"]:
    if column.lowest is None or column.highest is None or not values.size:
        return np.zeros(len(values))
    flat = values.reshape(len(values), -1)
    below = column.lowest - flat.min(1).astype(np.float64)
    above = flat.max(1).astype(np.float64) - column.highest
    far = _in_ranges(np.maximum(below, above), column.width)
    return np.where(far > _LEAST, far, 0.0)


def _in_ranges(beyond: np.ndarray, width: np.ndarray | float) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(width > 0, beyond / width, beyond > 0)


def _text(value: float) -> str:
    return "true" if value else "false"


def as_numbers(kind: str, values: np.ndarray) -> np.ndarray:
    """Dates as microseconds since 1970; all others as they are."""
    return microseconds(values) if kind == "datetime" else values


def is_missing(kind: str, values: np.ndarray) -> Bool[np.ndarray, "rows"]:
    """Whether each row lacks the column's value; no tensor does."""
    match kind:
        case "category":
            return np.array([value is None for value in values.tolist()], dtype=bool)
        case "text":
            return np.array([not value for value in values.tolist()], dtype=bool)
        case "tensor":
            return np.zeros(len(values), dtype=bool)
    return np.isnan(as_numbers(kind, values))
