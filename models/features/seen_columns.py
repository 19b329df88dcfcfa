"""What the training rows had in each column, and how far outside of it a value is.

The score of a value is 0 inside. It is

* for a number or a date x beyond the range [l, h]: max(l − x, x − h) ÷ (h − l), its distance in
  ranges. An element of a tensor counts likewise, and the farthest one is the row's.
* for a number in a gap of the training values (`find_gaps`): its distance
  from the nearer end ÷ half the gap's width, beyond a margin.
* for a level that no training row had: 1 − c ÷ 2r, with the share c of training rows that have a
  level to themselves, which estimates the probability of a new level (Good 1953), and the
  false-alarm rate r; 0 where c > r, as for identifiers.
* for a missing value where none was missing: 1.

A row's score is the largest of its columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Len
from jaxtyping import Bool, Float

from models.config.ranges import Count, Flag, NotNegative, Number, Probability, Text
from models.features import weighted
from models.features.clock import microseconds
from models.features.columns import level_text
from models.features.targets import present
from models.features.weighted import Weights

MAX_LEVELS = 10  # that are listed: enough to see what is meant
_LEAST = 1e-6  # ranges beyond which a number is outside: rounding to float32 is no reason
_DAY = 86_400e6  # microseconds
_BLOCK = 32  # columns scored at once
MAX_GAPS = 100
_NEIGHBOURS = 10  # m: their mean is known to a third, and clusters of so few values count as such
_STRAY_SHARE = 1_000  # rows per stray value at each end, of which there may always be one
_STRAY_DISTANCE = 3.0  # ranges of the other values, from the outermost of them
_MIN_ROWS = 20  # fewer do not tell which value is stray
NewLevels = Mapping[int, Bool[np.ndarray, "rows"]]
"""For each category, by its number: whether each row's level is new."""


@dataclass(frozen=True)
class Gap:
    """A stretch between two training values, in which there were none.

    Args:
        lowest, highest: these values.
        margin: the distance from them that a new value beside them passes with a probability of
            the false-alarm rate, if the gap is an accident.
    """

    lowest: Number
    highest: Number
    margin: NotNegative

    def depth(self, values: Float[np.ndarray, "rows"]) -> Float[np.ndarray, "rows"]:
        """How far inside values are: 0 outside and within the margin, 1 half way between the ends.

        NaN counts as outside.
        """
        nearest = np.minimum(values - self.lowest, self.highest - values)
        return np.where(nearest > self.margin, nearest / (0.5 * (self.highest - self.lowest)), 0.0)


@dataclass(frozen=True)
class SeenColumn:
    """What the training rows had in one column.

    Args:
        kind: the type that the column is read as.
        lowest, highest: of numbers, and of dates in microseconds since 1970, without stray values
            (`robust_range`); of all elements of tensors; None of other columns, and if all values
            are missing.
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
                return cls._of_levels(weighted.count(values, weights), rate, missing=absent)
            case "boolean":
                known = np.unique(values[~np.isnan(values)])
                levels = tuple(level_text(value > 0) for value in known.tolist())
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
        known = {level: rows for level, rows in counts.items() if level is not None}
        frequent = weighted.by_frequency(known)
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

    def per_column(
        self, values: Sequence[np.ndarray], new_levels: NewLevels
    ) -> Float[np.ndarray, "rows columns"]:
        """The score of every value; the largest of a row is the row's.

        Args:
            values: of each column, as in `SeenColumn.fit`.
        """
        found = np.zeros((len(values[0]) if values else 0, len(self.columns)))
        for start in range(0, len(self._numbers), _BLOCK):
            block = self._numbers[start : start + _BLOCK]
            matrix = np.array([as_numbers(self.columns[i].kind, values[i]) for i in block]).T
            low, high, width, complete = self._known[:, start : start + len(block)]
            scores = _outside(matrix, matrix, low, high, width)
            scores = np.where(np.isnan(matrix), complete, scores)
            for place, i in enumerate(block):
                for gap in self.columns[i].gaps:
                    np.maximum(scores[:, place], gap.depth(matrix[:, place]), out=scores[:, place])
            found[:, block] = scores
        for i, column in enumerate(self.columns):
            if column.kind not in {"number", "datetime"}:
                found[:, i] = _of_other(column, values[i], new_levels.get(i))
        return found

    @cached_property
    def _numbers(self) -> list[int]:
        """The columns of numbers and dates."""
        kinds = enumerate(column.kind for column in self.columns)
        return [i for i, kind in kinds if kind in {"number", "datetime"}]

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
    scores = np.zeros(len(values))
    if column.kind == "tensor":
        if column.lowest is None or column.highest is None or not values.size:
            return scores
        flat = values.reshape(len(values), -1)
        least, greatest = flat.min(1).astype(np.float64), flat.max(1).astype(np.float64)
        return _outside(least, greatest, column.lowest, column.highest, column.width)
    if column.kind == "boolean":
        unseen = [value for value in (0.0, 1.0) if level_text(value > 0) not in column.levels]
        is_new = np.isin(values, unseen)
    if is_new is not None:
        scores = np.where(is_new, column.new_level, scores)
    return scores if column.missing else np.where(is_missing(column.kind, values), 1.0, scores)


def _outside(
    least: np.ndarray,
    greatest: np.ndarray,
    low: np.ndarray | float,
    high: np.ndarray | float,
    width: np.ndarray | float,
) -> np.ndarray:
    """How many ranges values are outside [low, high]; 0 of missing ones."""
    with np.errstate(all="ignore"):  # numbers near the largest there are, and constant columns
        beyond = np.maximum(low - least, greatest - high)
        far = np.where(width > 0, beyond / width, beyond > 0)
    return np.where(far > _LEAST, far, 0.0)


def as_numbers(kind: str, values: np.ndarray) -> np.ndarray:
    """Dates as microseconds since 1970; all others as they are."""
    return microseconds(values) if kind == "datetime" else values


def is_missing(kind: str, values: np.ndarray) -> Bool[np.ndarray, "rows"]:
    """Whether each row lacks the column's value; no tensor does."""
    match kind:
        case "text":
            return np.array([not value for value in values.tolist()], dtype=bool)
        case "tensor":
            return np.zeros(len(values), dtype=bool)
    return ~present(values)


def robust_range(
    values: np.ndarray, weights: Weights | None = None
) -> tuple[float | None, float | None]:
    """The least and the greatest value without stray ones; None if all are missing.

    One absurd training value would otherwise make every later one usual. At each end at most one
    value in a thousand rows, and at least one, may be stray: those beyond a gap of more than three
    times the range of the values before it. A column whose other values are all equal has none: it
    may be rare for it to vary.

    Args:
        weights: of the values, above 0; None if each is 1.
    """
    finite = np.isfinite(values)
    known = values[finite].astype(np.float64)
    if not known.size:
        return None, None
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    each = np.ones(len(known)) if weights is None else weights[finite][order]
    each = each * max(1.0, len(each) / each.sum())  # weights that are shares of 1 count as rows
    most = max(1.0, each.sum() // _STRAY_SHARE)
    if each.sum() < _MIN_ROWS:
        return float(ordered[0]), float(ordered[-1])
    low, high = _inner(each, most), len(each) - 1 - _inner(each[::-1], most)
    if low >= high:
        return float(ordered[0]), float(ordered[-1])
    lower = -_edge(-ordered[low::-1], float(-ordered[high]))
    return lower, _edge(ordered[high:], float(ordered[low]))


def _inner(weights: Weights, most: float) -> int:
    """The place of the first value that cannot be stray, as those before it weigh enough."""
    return int(np.searchsorted(np.cumsum(weights), most, side="right"))


def _edge(outwards: np.ndarray, start: float) -> float:
    """The greatest of these ascending values that is not stray.

    Args:
        start: a value at the other end.
    """
    spread, gaps = outwards[:-1] - start, np.diff(outwards)
    stray = np.flatnonzero((spread > 0) & (gaps > _STRAY_DISTANCE * spread))
    return float(outwards[stray[0]] if len(stray) else outwards[-1])


def find_gaps(values: np.ndarray, rate: float) -> tuple[Gap, ...]:
    """The gaps of a column in increasing order; of more than `MAX_GAPS` those that are wider for
    their neighbours.

    Where the density of n values changes slowly, the spacings of sorted values are independent and
    exponential, with a mean that their neighbours have, too (Pyke 1965, JRSS B 27(3)). A spacing w
    divided by the mean s of m other spacings then has an F distribution: P(w > t s) = (1 + t/m)^−m.
    A spacing is a gap if this probability is below the false-alarm rate ÷ the number of spacings.
    So a column without a hole has one with a probability of at most that rate.

    s is the mean of the m spacings on one side, the larger of the two sides. So spacings that grow
    towards a tail are no gaps, and neither is one with fewer than m values on a side. Equal values
    count once: a column of whole numbers or of a few codes has spacings that vary less than these.

    Args:
        rate: the false-alarm rate.
    """
    ordered = np.unique(values[np.isfinite(values)].astype(np.float64))
    num, m = len(ordered) - 1, _NEIGHBOURS
    if num <= 2 * m:
        return ()
    over_m = (ordered[m:] - ordered[:-m]) / m
    low, high = ordered[m : -m - 1], ordered[m + 1 : -m]
    usual = np.maximum(over_m[: len(low)], over_m[-len(low) :])
    ratio = (high - low) / usual
    found = np.flatnonzero(ratio > _quantile(rate / num))
    kept = np.sort(found[np.argsort(-ratio[found], kind="stable")[:MAX_GAPS]])
    margins = np.minimum(_quantile(rate) * usual, 0.5 * (high - low))
    each = (part[kept].tolist() for part in (low, high, margins))
    return tuple(Gap(*one) for one in zip(*each, strict=True))


def _quantile(probability: float) -> float:
    """The t with (1 + t/m)^−m = probability."""
    return float(_NEIGHBOURS * (probability ** (-1 / _NEIGHBOURS) - 1))
