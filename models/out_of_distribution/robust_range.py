"""The range of a column's training values, without stray ones."""

import numpy as np

from models.features.moments import Weights

_STRAY_SHARE = 1_000  # rows per stray value at each end, of which there may always be one
_STRAY_DISTANCE = 3.0  # ranges of the other values, from the outermost of them
_MIN_ROWS = 20  # fewer do not tell which value is stray


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
