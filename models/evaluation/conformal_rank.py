"""Scores of calibration rows, and the score that a new row's does not exceed at a level.

Each calibration has a score of its own, which tells how far a target is from its prediction.
Scores are kept as order statistics, a few thousand of any number of rows, with the rows' weights.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float64

from models.evaluation.weighting import PerRow, Weights, filled

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
    scores: Sequence[float] | np.ndarray,
    weights: Sequence[float] | np.ndarray,
    level: float,
    beyond: float,
) -> float:
    """The score that an exchangeable row's does not exceed with a probability of `level` or more.

    Args:
        scores: in increasing order.
        weights: of the scores; none if each is 1.
        beyond: the answer if there are too few scores.
    """
    if len(weights):
        place = weighted_place(np.asarray(weights), level)
    else:
        place = conformal_rank(len(scores), level) - 1
    return float(scores[place]) if place < len(scores) else beyond


@dataclass(frozen=True)
class Reference:
    """The scores of calibration rows in increasing order, and what each row counts as.

    Args:
        per_label: what a labelled row counts as when the level follows it. The steps of a forecast
            share errors: they count as one row together.
    """

    scores: Float64[np.ndarray, "rows"]
    weights: Float64[np.ndarray, "rows"]
    per_label: float = 1.0


class RanksScores(ABC):
    """A frozen dataclass that ranks the scores of rows: each calibration has scores of its own.

    Args:
        weights: of the scores; () if each is 1.
        beyond: the score at a level for which the rows are too few.
    """

    weights: tuple[float, ...]
    beyond: ClassVar[float] = math.inf

    @property
    @abstractmethod
    def ranked(self) -> tuple[float, ...]:
        """The scores in increasing order; of many rows only evenly spread order statistics."""

    def score(self, level: float) -> float:
        """The score that a new row's does not exceed with a probability of `level` or more.

        It is the ⌈(n + 1) · level⌉-th smallest of n scores; with weights n is their sum. The row
        must be exchangeable with the calibration rows.
        """
        return score_at(self.ranked, self.weights, level, self.beyond)

    def reference(self) -> Reference | None:
        """The scores, which those of labelled rows join."""
        each = self.weights or (1.0,) * len(self.ranked)
        return Reference(np.asarray(self.ranked, float), np.asarray(each, float))


def order_statistics(
    values: PerRow, weights: Weights | None = None, most: int = MAX_RESIDUALS
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The values of rows that count, in increasing order, and their weights; () if each is 1.

    Of too many, m evenly spread ones are kept, each with the weight v = min(1, W/m), where W is the
    sum of all weights. The k-th is the smallest up to which the weights are at least
    k v (W + 1) / (m v + 1): without weights the ⌈k (n + 1) / (m + 1)⌉-th. A quantile of the kept
    values is therefore never below that of all values.
    """
    scores, w = values.cpu().numpy(), filled(weights, values).cpu().numpy()
    scores, w = scores[w > 0], w[w > 0]
    order = np.argsort(scores, kind="stable")
    scores, w = scores[order], w[order]
    if len(scores) > most:
        below = np.cumsum(w)
        weight = min(1.0, below[-1] / most)
        wanted = np.arange(1, most + 1) * weight * (below[-1] + 1) / (most * weight + 1)
        places = np.searchsorted(below, wanted * (1 - 1e-12)).clip(max=len(scores) - 1)
        scores, w = scores[places], np.full(most, weight)
    return tuple(scores.tolist()), () if (w == 1).all() else tuple(w.tolist())
