"""Fills missing values, so that a window can be read: as inputs only, never as targets.

Let values a … b−1 be missing, and s the season. L is the least multiple of s that is longer than
the hole, so that a season before is known or filled for each of its steps. Then

    x_t = x_{t−L} + c_t,

where c goes linearly from x_{a−1} − x_{a−1−L} to x_b − x_{b−L}: the shape of the season before at
the level of the values around the hole. Without a season, or without L steps before the hole, it
is the line from x_{a−1} to x_b. At the end of a series c stays as it is before the hole.

A filled value follows from values up to x_b only. A window that ends in a known value and predicts
a later one thus reads nothing of what it predicts.
"""

import numpy as np
from jaxtyping import Float

MOST_MISSING = 0.5  # of a window that is read: beyond it most of the inputs would be made up


def fill(values: Float[np.ndarray, "steps"], season: int) -> Float[np.ndarray, "steps"]:
    """The values with every missing one filled, but those before the first known value."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    filled = values.copy()
    for start, stop in holes(missing):
        if start > 0:
            filled[start:stop] = _between(filled, start, stop, season)
    return filled


def holes(missing: np.ndarray) -> list[tuple[int, int]]:
    """Start and stop of every run of missing values."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in ends.reshape(-1, 2)]


def readable(values: Float[np.ndarray, "steps"], span: int) -> np.ndarray:
    """Whether `span` values up to each step, the step included, can be read: [steps − span + 1].

    The last of them is known, the first is known or filled, and not too many are missing.
    """
    missing = np.isnan(values)
    before = np.concatenate([[0], np.cumsum(missing)])
    few = before[span:] - before[:-span] <= MOST_MISSING * span
    begun = np.logical_or.accumulate(~missing)[: len(values) - span + 1]
    return few & ~missing[span - 1 :] & begun


def _between(filled: np.ndarray, start: int, stop: int, season: int) -> np.ndarray:
    """The values of a hole whose earlier values are all known or filled."""
    lag = season * ((stop - start) // season + 1)
    reference = np.zeros(stop - start + 2)  # of the steps from before the hole to after it
    if season > 1 and start - 1 >= lag and not np.isnan(filled[start - 1 - lag]):
        reference = filled[start - 1 - lag : stop + 1 - lag]
    left = filled[start - 1] - reference[0]
    right = filled[stop] - reference[-1] if stop < len(filled) else left
    line = np.linspace(left, right, stop - start + 2)
    return (reference + line)[1:-1]
