"""The range of a column's training values, without stray ones."""

import numpy as np

_STRAY_SHARE = 1_000  # rows per stray value at each end, of which there may always be one
_STRAY_DISTANCE = 3.0  # ranges of the other values, from the outermost of them
_MIN_ROWS = 20  # fewer do not tell which value is stray


def robust_range(values: np.ndarray) -> tuple[float | None, float | None]:
    """The least and the greatest value without stray ones; None if all are missing.

    One absurd training value would otherwise make every later one usual. At each end at most one
    value in a thousand rows, and at least one, may be stray: those beyond a gap of more than three
    times the range of the values before it. A column whose other values are all equal has none: it
    may be rare for it to vary.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return None, None
    most = max(1, len(known) // _STRAY_SHARE)
    if len(known) < max(_MIN_ROWS, 2 * most + 2):
        return float(known.min()), float(known.max())
    last = len(known) - 1
    ends = np.partition(known, [most, last - most]).astype(np.float64)
    lower, upper = np.sort(ends[: most + 1]), np.sort(ends[last - most :])
    return -_edge(-lower[::-1], float(-upper[0])), _edge(upper, float(lower[-1]))


def _edge(upper: np.ndarray, start: float) -> float:
    """The greatest of these ascending values that is not stray.

    Args:
        start: a value at the other end.
    """
    for below, above in zip(upper[:-1], upper[1:], strict=True):
        spread = float(below) - start
        if spread > 0 and float(above - below) > _STRAY_DISTANCE * spread:
            return float(below)
    return float(upper[-1])
