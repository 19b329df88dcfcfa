"""Gaps of a column's training values that are wide for the column.

Where the density of n values changes slowly, the spacings of sorted values are independent and
exponential, with a mean that their neighbours have, too (Pyke 1965, JRSS B 27(3)). A spacing w
divided by the mean s of m other spacings then has an F distribution: P(w > t s) = (1 + t/m)^−m.
A spacing is a gap if this probability is below the false-alarm rate ÷ the number of spacings, so
that a column without a hole has one with a probability of at most that rate.

s is the mean of the m spacings on one side, the larger of the two sides. So spacings that grow
towards a tail are no gaps, and neither is one with fewer than m values on a side. Equal values
count once: a column of whole numbers or of a few codes has spacings that vary less than these.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from models.config.ranges import NotNegative, Number

MAX_GAPS = 100
_NEIGHBOURS = 10  # m: their mean is known to a third, and clusters of so few values count as such


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


def find_gaps(values: np.ndarray, rate: float) -> tuple[Gap, ...]:
    """The gaps of a column in increasing order; of more than `MAX_GAPS` those that are wider for
    their neighbours.

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
