"""How often each whole number occurs in a target: what the histogram says of its meaning."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

_SURE = 3.0  # standard deviations by which a valley is deeper than chance makes it
_FLAT = 2.0  # the most frequent value ÷ the rarest one
_EVEN = 2.0  # variance ÷ mean of the counts: of 26 values above 1.7 in 1 of 100 tables
_COUNT_TAIL = 20  # the most frequent value ÷ the largest one, of counts


@dataclass(frozen=True)
class ValueCounts:
    """The distinct values of a target in increasing order, and the rows of each."""

    values: Float[np.ndarray, "values"]
    rows: Int[np.ndarray, "values"]

    @classmethod
    def of(cls, target: Float[np.ndarray, "rows"]) -> "ValueCounts":
        """Missing values do not count."""
        values, rows = np.unique(target[~np.isnan(target)], return_counts=True)
        return cls(values, rows)

    @classmethod
    def of_blocks(
        cls, blocks: Iterable[Float[np.ndarray, "rows"]], most: int | None = None
    ) -> "ValueCounts | None":
        """The same, of a target in blocks of rows; None once there are more than `most` values."""
        values, rows = np.empty(0), np.empty(0, np.int64)
        for block in blocks:
            here = cls.of(block)
            values, place = np.unique(np.concatenate([values, here.values]), return_inverse=True)
            if most is not None and len(values) > most:
                return None
            rows = np.bincount(place, np.concatenate([rows, here.rows])).astype(np.int64)
        return cls(values, rows)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> int:
        return int(self.rows.sum())

    @property
    def are_whole(self) -> bool:
        return bool((self.values == np.round(self.values)).all())

    @property
    def are_years(self) -> bool:
        return bool(self.values[0] >= 1900 and self.values[-1] <= 2100)

    @property
    def are_numbered(self) -> bool:
        """Whether they are 0, 1, 2, … or 1, 2, 3, … without a gap, as codes of classes are."""
        first = self.values[0]
        return bool(first in (0.0, 1.0) and (np.diff(self.values) == 1).all())

    @property
    def are_flat(self) -> bool:
        return bool(self.rows.max() < _FLAT * self.rows.min())

    @property
    def are_even(self) -> bool:
        """Whether they are flat, or vary no more than chance lets equally frequent values vary.

        The variance of such counts is their mean.
        """
        return self.are_flat or bool(self.rows.var() < _EVEN * self.rows.mean())

    @cached_property
    def have_one_peak(self) -> bool:
        """Whether the histogram rises to one peak and falls, apart from what chance explains.

        A value is a valley if its count is below the highest one to its left and to its right.
        The difference of two Poisson counts has their sum as its variance.
        """
        left = np.maximum.accumulate(self.rows)
        right = np.maximum.accumulate(self.rows[::-1])[::-1]
        sides = np.minimum(left, right)
        return bool((sides - self.rows <= _SURE * np.sqrt(sides + self.rows)).all())

    @property
    def look_like_counts(self) -> bool:
        """Whether they start at 0, and fall off from 0 or 1 to a thin tail."""
        falls = self.rows.argmax() <= 1 and self.rows[-1] * _COUNT_TAIL <= self.rows.max()
        return bool(self.values[0] == 0 and falls and self.have_one_peak)
