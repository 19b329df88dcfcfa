"""How the targets of a model depend on each other, learned from rows that no weight was fitted to.

The joint intervals are conformal (Vovk, Gammerman and Shafer 2005, §2.2), with the largest
conformity of a row's targets as its score (Messoudi, Destercke and Rousseau 2021, §4: one level
for all targets): the targets of a new row lie in all their intervals together with the wanted
probability, whatever the copula.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float

from models.config.ranges import Count, Number, Positive, Probability
from models.evaluation.conformal_rank import MAX_RESIDUALS, RanksScores, order_statistics
from models.joint.copula import fit_correlation

MAX_TARGETS = 16


@dataclass(frozen=True)
class Transforms:
    """The distribution functions of one target at the true values of some rows.

    Args:
        randomised: F(y), at values with a probability randomised (`NumberMixture.pit`).
        middle: ½ (F(y−) + F(y)); at other values the same.
        weights: of the rows.
    """

    randomised: Float[np.ndarray, "rows"]
    middle: Float[np.ndarray, "rows"]
    weights: Float[np.ndarray, "rows"]

    @property
    def weighs(self) -> bool:
        """Whether the rows have different weights."""
        return bool((self.weights != 1).any())


@dataclass(frozen=True)
class Dependence(RanksScores):
    """A copula, and the scores that give joint intervals their widths.

    Args:
        correlation: of the targets' normal scores (`models.joint.copula`).
        scores: the largest |2F_k(y_k) − 1| of each row's targets, in increasing order; of many
            rows only evenly spread order statistics.
        rows: how many there were.
        weights: of the scores; () if each is 1.
    """

    correlation: Annotated[tuple[tuple[Number, ...], ...], Len(2, MAX_TARGETS)]
    scores: Annotated[tuple[Probability, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    beyond: ClassVar[float] = 1.0  # the intervals are then unbounded

    @property
    def ranked(self) -> tuple[float, ...]:
        return self.scores

    @classmethod
    def fit(cls, targets: Sequence[Transforms]) -> "Dependence":
        """The dependence of targets, whose transforms are of the same rows in the same order."""
        weights = targets[0].weights
        middle = np.column_stack([one.middle for one in targets])
        correlation = fit_correlation(middle, weights)
        largest = torch.from_numpy(largest_conformity(targets))
        of_rows = torch.from_numpy(weights) if targets[0].weighs else None
        scores, kept = order_statistics(largest, of_rows)
        matrix = tuple(tuple(row) for row in correlation.tolist())
        return cls(matrix, scores, len(largest), kept)

    @classmethod
    def unknown(cls, targets: int) -> "Dependence":
        """That of a model without rows for its calibration: none, and unbounded intervals."""
        identity = tuple(tuple(row) for row in np.eye(targets).tolist())
        return cls(identity, (), 0)

    def probability(self, level: float) -> float:
        """The probability of each target's central interval, so that all cover together."""
        return self.score(level)

    def coverage(self, targets: Sequence[Transforms], level: float) -> float:
        """The share of rows whose targets all lie in their joint intervals.

        A whole number that an interval ends at counts in part, so that it is at most the share.
        """
        inside = largest_conformity(targets) <= self.probability(level)
        return float(np.average(inside, weights=targets[0].weights))


def largest_conformity(targets: Sequence[Transforms]) -> Float[np.ndarray, "rows"]:
    """max_k |2F_k(y_k) − 1| of each row."""
    each = [np.abs(2 * one.randomised - 1).clip(max=1) for one in targets]
    return np.max(each, axis=0)
