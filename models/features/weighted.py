"""Moments, quantiles and counts of weighted rows: a row of weight w counts as w rows.

Weights are above 0, and None if each is 1. Whole weights give what repeated rows give.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Num

Values = Num[np.ndarray, "rows"]
Weights = Float[np.ndarray, "rows"]


def mean(values: Values, weights: Weights | None) -> float:
    return float(values.mean() if weights is None else np.average(values, weights=weights))


def deviation(values: Values, weights: Weights | None) -> float:
    """The standard deviation, divided by the number of rows."""
    return float(values.std()) if weights is None else float(np.sqrt(variance(values, weights)))


def variance(values: Values, weights: Weights | None) -> float:
    """The variance, divided by the number of rows."""
    if weights is None:
        return float(values.var())
    return mean(np.square(values - mean(values, weights)), weights)


def total(values: np.ndarray, weights: Weights | None) -> float:
    """The number of rows that the rows count as."""
    return float(len(values)) if weights is None else float(weights.sum())


def part(weights: np.ndarray | None, index: np.ndarray | slice) -> np.ndarray | None:
    """The weights of some rows."""
    return None if weights is None else weights[index]


def product(weights: Weights | None, factors: Weights | None) -> Weights | None:
    """The weights times the factors, each of which may be 1 for all rows: None."""
    if weights is None or factors is None:
        return factors if weights is None else weights
    return weights * factors


def quantile(
    values: Values, shares: Sequence[float], weights: Weights | None
) -> Float[np.ndarray, "shares"]:
    """Quantiles, interpolated linearly between order statistics.

    Weights that add up to less than the number of rows are scaled up to it: weights that are shares
    of 1 give the same quantiles as weights with mean 1.
    """
    if weights is None:
        return np.quantile(values, shares)
    order = np.argsort(values, kind="stable")
    ordered, each = values[order], weights[order] * max(1.0, len(values) / weights.sum())
    ends = np.cumsum(each)
    places = np.asarray(shares) * max(0.0, ends[-1] - 1)
    whole = np.floor(places + _ROUNDING)
    low, high = (
        ordered[np.searchsorted(ends, place + _ROUNDING, side="right").clip(max=len(values) - 1)]
        for place in (whole, whole + 1)
    )
    return low + (places - whole).clip(0, 1) * (high - low)


_ROUNDING = 1e-9  # of cumulative weights, in rows


def count(values: np.ndarray, weights: Weights | None) -> Mapping[str | None, float]:
    """The number of rows of each level, or their weight; None counts the missing ones."""
    if weights is None:
        return Counter(values.tolist())
    counts: dict[str | None, float] = {}
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        counts[value] = counts.get(value, 0.0) + weight
    return counts


def by_frequency(counts: Mapping[str, float]) -> list[str]:
    """The levels, the most frequent first; equally frequent ones in the order of their text."""
    return sorted(counts, key=lambda level: (-counts[level], level))
