"""Columns that tell the target on their own: copies of it, or what was known only after it.

The rows are put in the order of a column. Where the column tells the target, the targets of
neighbours agree, and their differences estimate what it leaves open (Rice 1984, *Annals of
Statistics* 12: σ̂² = Σ (yᵢ₊₁ − yᵢ)² ÷ 2n). Neighbours are other rows, so nothing is fitted and
nothing can be fitted too closely. Equal values stay in random order; of categories, only rows of
one level are neighbours.

* a number is told if less than a thousandth of the variance of its ranks is left open. Ranks make
  a logarithm or a price in other units a copy. A slip, such as a price ten times too high, moves
  one rank from one end to the other, so one row, and one more of each 500, may differ: neighbours
  are compared with pairs in random order, both without the pairs that differ most (Rousseeuw 1984,
  least trimmed squares). Of a target that is nearly always the same, all pairs count: its few
  other rows are no slips.
* a class is told if fewer than one in a hundred of the neighbours with a class other than the most
  frequent one disagree, with the upper bound of three more for chance (95 % for none). That takes
  300 such rows: in small tables honest columns part two classes, such as petals of irises.
* a class is also told by as many levels as there are classes if each level has a class of its own
  and shuffled rows would agree so with a probability below 10⁻⁶.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.features.columns import Columns
from models.features.targets import present

SEED = 0
_FIRST = 1_000  # rows that every column is tried on
_OPEN, _OPEN_FIRST = 1e-3, 2e-2  # of the variance
_WRONG, _WRONG_FIRST = 0.01, 0.05  # of the neighbours
_ALLOWANCE = 3.0
_MIN_ROWS = 30
_CHANCE = math.log(1e-6)
_OPEN_TREND, _OPEN_LINE = 1e-2, 1e-6
_ROWS_PER_SLIP = 500  # besides the first one
_DIFFER = 0.2  # of random pairs, from which a few that differ may be slips
_TYPES = ("number", "boolean", "category")


def find_leaks(
    columns: Columns, types: Mapping[str, str], target: np.ndarray, *, classes: bool
) -> Sequence[str]:
    """Names of the columns that tell the target on their own.

    Args:
        columns: of the rows to look at, without the target; tensors, texts and times are ignored.
        target: numbers, or levels; rows without one are ignored.
        classes: whether the target is a class.
    """
    known = np.flatnonzero(present(target))
    names = [name for name in columns if types[name] in _TYPES]
    if len(known) < _MIN_ROWS or len(names) < 2:
        return []
    told = _Told.of(target[known], classes=classes)
    values = ((name, _Values.of(columns[name][known], types[name])) for name in names)
    return [name for name, one in values if told.by(one)]


@dataclass(frozen=True)
class _Values:
    """A column as numbers; missing values are one of them."""

    numbers: np.ndarray
    ordered: bool  # whether neighbours among unequal numbers are alike

    @classmethod
    def of(cls, values: np.ndarray, type_: str) -> "_Values":
        if type_ == "category":
            return cls(_codes(values), ordered=False)
        return cls(values.astype(np.float64), ordered=True)

    def neighbours(self, rows: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The targets of each pair of rows that are next to each other in this column."""
        order = rows[np.argsort(self.numbers[rows], kind="stable")]
        first, second = order[:-1], order[1:]
        if not self.ordered:
            alike = self.numbers[first] == self.numbers[second]
            first, second = first[alike], second[alike]
        return target[first], target[second]


@dataclass(frozen=True)
class _Told:
    """A target, and the rows of which it is asked whether columns tell it, in random order.

    Args:
        target: numbers of classes, or ranks.
        trend: the numbers of a target that follows from the order of the rows.
    """

    target: np.ndarray
    classes: bool
    rows: np.ndarray
    trend: np.ndarray | None

    @classmethod
    def of(cls, target: np.ndarray, *, classes: bool) -> "_Told":
        rows = np.random.default_rng(SEED).permutation(len(target))
        if classes:
            return cls(_codes(target), classes, rows, None)
        ranks, numbers = _ranks(target.astype(np.float64)), target.astype(np.float64)
        trends = _left_open(ranks[:-1], ranks[1:], ranks[rows]) < _OPEN_TREND
        return cls(ranks, classes, rows, numbers if trends else None)

    @cached_property
    def _counts(self) -> np.ndarray:
        """The rows of each class."""
        return np.bincount(self.target.astype(np.int64))

    def by(self, values: _Values) -> bool:
        """Whether a column tells this target."""
        if np.ptp(self.target) == 0:
            return False
        return self._is_told(values, self.rows[:_FIRST], first=True) and self._is_leak(values)

    def _is_leak(self, values: _Values) -> bool:
        if self.classes and _is_recoded(values.numbers, self.target):
            return True
        if self.trend is not None and not _is_line(
            values.numbers[self.rows], self.trend[self.rows]
        ):
            return False
        return self._is_told(values, self.rows, first=False)

    def _is_told(self, values: _Values, rows: np.ndarray, *, first: bool) -> bool:
        one, other = values.neighbours(rows, self.target)
        if self.classes:
            return self._agree(one, other, first=first)
        if len(one) < _MIN_ROWS - 1:
            return False
        least = 12 / len(rows) ** 2  # a copy's ranks are one apart, and so leave 6 ÷ rows²
        left = _left_open(one, other, self.target[rows])
        return left < (_OPEN_FIRST if first else _OPEN) + least

    def _agree(self, one: np.ndarray, other: np.ndarray, *, first: bool) -> bool:
        counts = self._counts
        usual = counts.argmax()
        pairs = int(((one != usual) | (other != usual)).sum())
        unequal = int((one != other).sum()) - (len(counts) - 1)
        if first:
            return unequal <= _WRONG_FIRST * pairs + _ALLOWANCE
        return unequal + _ALLOWANCE < _WRONG * pairs


def _left_open(one: np.ndarray, other: np.ndarray, shuffled: np.ndarray) -> float:
    """The share of the variance that differs between neighbours, but for slips.

    Args:
        shuffled: the target in random order.
    """
    pairs = shuffled[1:] - shuffled[:-1]
    trimmed = bool(np.count_nonzero(pairs) >= _DIFFER * len(pairs))
    usual = _mean_square(pairs, trimmed=trimmed)
    return _mean_square(one - other, trimmed=trimmed) / usual if usual else 1.0


def _mean_square(differences: np.ndarray, *, trimmed: bool) -> float:
    """Of pairs of rows, if trimmed without the largest: each slip is in two pairs."""
    squares = np.square(differences)
    if not trimmed:
        return float(squares.mean())
    rest = max(1, len(squares) - 2 * (1 + len(squares) // _ROWS_PER_SLIP))
    return float(np.partition(squares, rest - 1)[:rest].mean())


def _is_line(values: np.ndarray, target: np.ndarray) -> bool:
    """Whether the target is a straight line in the values, but for slips.

    The slope is the median of the slopes between rows that follow each other (as of Theil 1950),
    so the rows must be in random order.
    """
    known = np.isfinite(values)
    values, target = values[known], target[known]
    steps = np.diff(values)
    if not np.any(steps):
        return False
    slope = np.median(np.diff(target)[steps != 0] / steps[steps != 0])
    rest = target - slope * values
    return _left_open(rest[1:], rest[:-1], target) < _OPEN_LINE


def _codes(values: np.ndarray) -> np.ndarray:
    texts = [f"={value}" if value is not None else "" for value in values.tolist()]
    return np.unique(np.array(texts), return_inverse=True)[1].astype(np.float64)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Mean ranks: equal values have equal ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def _is_recoded(values: np.ndarray, target: np.ndarray) -> bool:
    """Whether levels and classes correspond one to one, and not by chance."""
    _, level = np.unique(np.nan_to_num(values, nan=np.inf), return_inverse=True)
    classes = target.astype(np.int64)
    counts = np.bincount(classes)
    pairs = np.unique(level * len(counts) + classes)
    if not len(pairs) == len(counts) == level.max() + 1:
        return False
    ways = math.lgamma(len(target) + 1) - sum(math.lgamma(count + 1) for count in counts)
    return math.lgamma(len(counts) + 1) - ways < _CHANCE
