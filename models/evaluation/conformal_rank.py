"""Ranks of conformal prediction: the score that a new row's does not exceed at a level.

Scores are kept as order statistics, a few thousand of any number of rows, with the rows' weights.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

MAX_RESIDUALS = 9_999  # 20 · 500 − 1, so that the usual levels are exact


def conformal_rank(num_rows: int, level: float) -> int:
    """k = ⌈(n + 1) · level⌉, at least 1.

    The score of a new, exchangeable row is at most the k-th smallest of n scores, with a
    probability of `level` or more (Vovk et al. 2005, §2.2). If k is n + 1, there is no such score.
    """
    return max(1, math.ceil((num_rows + 1) * level - 1e-9))  # rounding must not raise an integer


def weighted_place(weights: Float[np.ndarray, "rows"], level: float) -> int:
    """The place, from 0, of the smallest score r with Σ_{score_i ≤ r} w_i ≥ level · (Σ w_i + 1).

    The new row has weight 1. For whole weights this is the place of the ⌈(n + 1) · level⌉-th of the
    repeated rows. If no score is large enough, it is the number of rows.

    Args:
        weights: in the order of the increasing scores.
    """
    below = np.cumsum(weights)
    wanted = level * (below[-1] + 1) if len(below) else level
    return int(np.searchsorted(below, wanted - 1e-9 * max(1.0, wanted)))


def score_at(
    scores: Sequence[float], weights: Sequence[float], level: float, beyond: float
) -> float:
    """The score that an exchangeable row's does not exceed with a probability of `level` or more.

    Args:
        scores: in increasing order.
        weights: of the scores; none if each is 1.
        beyond: the answer if there are too few scores.
    """
    if weights:
        place = weighted_place(np.asarray(weights), level)
    else:
        place = conformal_rank(len(scores), level) - 1
    return scores[place] if place < len(scores) else beyond


def order_statistics(
    values: Float[Tensor, "rows"],
    weights: Float[Tensor, "rows"] | None = None,
    most: int = MAX_RESIDUALS,
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The values in increasing order, at most `most` of them, evenly spread, and their weights.

    The k-th of m kept values is the ⌈k (n + 1) / (m + 1)⌉-th of all n. A quantile of the kept
    values is therefore never below that of all values. The weights are () if each is 1.
    """
    if weights is not None:
        return _weighted_statistics(values.cpu().numpy(), weights.double().cpu().numpy(), most)
    ordered = np.sort(values.cpu().numpy())
    n, m = len(ordered), min(len(ordered), most)
    ranks = -(-np.arange(1, m + 1) * (n + 1) // (m + 1))
    return tuple(ordered[ranks - 1].tolist()), ()


def _weighted_statistics(
    values: Float[np.ndarray, "rows"], weights: Float[np.ndarray, "rows"], most: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """All values that count, with their weights; of too many m, each with the weight v.

    The k-th is the smallest up to which the weights are at least k v (W + 1) / (m v + 1), where W
    is the sum of all weights and v = min(1, W/m). For whole weights this is the rule for rows.
    """
    counts = weights > 0
    order = np.argsort(values[counts], kind="stable")
    values, weights = values[counts][order], weights[counts][order]
    m, below = most, np.cumsum(weights)
    if len(values) <= m:
        return tuple(values.tolist()), tuple(weights.tolist())
    each = min(1.0, below[-1] / m)
    wanted = np.arange(1, m + 1) * each * (below[-1] + 1) / (m * each + 1)
    places = np.searchsorted(below, wanted * (1 - 1e-12)).clip(max=len(values) - 1)
    return tuple(values[places].tolist()), () if each == 1 else (each,) * m
