"""Do the features order the values of a target? Ordered grades and counts: yes; codes: no.

For one feature x and a target with K values, η² is the share of the variance of x between the
values, and r² the share that a straight line through the target's own numbers explains. If the
numbers mean an order, most of η² is in r². If they are codes in any order, the expected part is
1 ÷ (K − 1). Both are summed over the features, less what chance alone gives.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from models.features.columns import Columns

MAX_ROWS = 5_000  # evenly spread: a share known to two digits
_MAX_LEVELS = 10  # of a category, each as a number of 0 and 1
_CLEAR = 5.0  # standard deviations of Σ η² under chance


@dataclass(frozen=True)
class LevelOrder:
    """What the features say about the order of a target's values.

    Args:
        share: Σ r² ÷ Σ η² without chance, between 0 and 1: 1 if a line through the values explains
            all that the features know of them.
        is_known: whether the features know anything of the values.
    """

    share: float
    is_known: bool


def measure_order(
    values: Float[np.ndarray, "rows"], features: Columns, types: Mapping[str, str]
) -> LevelOrder:
    """The order of a target's values by features of any type; others than numbers, booleans and
    categories are left out.

    Args:
        values: the target, NaN where it is missing.
        types: of the features, as their arrays are.
    """
    rows = np.flatnonzero(~np.isnan(values))
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).astype(np.int64)]
    y, place = values[rows], np.unique(values[rows], return_inverse=True)[1]
    between, line, chance, spread = 0.0, 0.0, 0.0, 0.0
    for name, column in features.items():
        for x in _numbers(column[rows], types[name]):
            found = _shares(x, y, place)
            if found is None:
                continue
            n, k, eta, r = found
            between, line = between + eta - (k - 1) / (n - 1), line + r - 1 / (n - 1)
            chance += (k - 1) / (n - 1)
            spread += 2 * (k - 1) / (n - 1) ** 2  # the variance of η², about χ²(K − 1) ÷ n
    if between <= _CLEAR * np.sqrt(spread) or not chance:
        return LevelOrder(0.0, is_known=False)
    return LevelOrder(float(np.clip(line / between, 0.0, 1.0)), is_known=True)


def _numbers(column: np.ndarray, type_: str) -> Iterator[Float[np.ndarray, "rows"]]:
    """The column as numbers: ranks, so that outliers count as little as others."""
    if type_ == "category":
        levels, counts = np.unique([str(v) for v in column], return_counts=True)
        for level in levels[np.argsort(-counts)][:_MAX_LEVELS]:
            yield (column == level).astype(float)
    elif type_ in ("number", "boolean"):
        yield _ranks(column)


def _ranks(x: Float[np.ndarray, "rows"]) -> Float[np.ndarray, "rows"]:
    """The mean rank of each value; NaN stays."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[place]
    return np.where(np.isnan(x), np.nan, ranks)


def _shares(
    x: Float[np.ndarray, "rows"], y: Float[np.ndarray, "rows"], place: Int[np.ndarray, "rows"]
) -> tuple[int, int, float, float] | None:
    """Rows, values of the target, η² and r² of one feature; None if it does not vary."""
    known = ~np.isnan(x)
    x, y, place = x[known], y[known], place[known]
    if len(x) < 3 or x.std() <= 1e-12 * np.abs(x).max() or y.std() == 0:
        return None
    x = (x - x.mean()) / x.std()
    counts = np.bincount(place)
    sums = np.bincount(place, x)[counts > 0]
    counts = counts[counts > 0]
    eta = float((sums**2 / counts).sum() / len(x))
    r = float((x * (y - y.mean())).mean() / y.std())
    return len(x), len(counts), eta, r**2
