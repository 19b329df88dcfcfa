"""Sets of classes that contain the true one with a wanted probability.

Every set has the most probable classes of a row, so that its size says all. A credible set has as
many as predict the level. A conformal one contains the truth with that probability for rows like
the calibration rows, whether the predicted probabilities are right or not (adaptive prediction
sets: Romano, Sesia and Candès 2020, arXiv 2006.02544; regularised: Angelopoulos, Bates, Malik and
Jordan 2021, arXiv 2009.14193). Our score of a class leaves out the class's own probability:

    s_r = p_1 + … + p_{r−1} + λ max(0, r − k),   s_1 = 0,

of the class with the r-th largest probability. The papers add u p_r, with a random number u of
each row, so that scores without ties give the level exactly, and sets may be empty. Here the most
probable class has no score to exceed, so that no set is empty, and all other scores differ without
a random number: the coverage is the level, or the accuracy if this is above it.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Float, Int
from torch import Tensor

from models.config import Json
from models.config.ranges import Count, NotNegative, Positive
from models.evaluation.conformal_rank import (
    MAX_RESIDUALS,
    RanksScores,
    conformal_rank,
    order_statistics,
)
from models.evaluation.weighting import PerRow, Weights, mean, paired

PENALTIES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # λ: from none to a probability of 1
_LEVELS = (0.8, 0.9, 0.95)  # whose sets shall be small
_CHOOSING = 5  # every fifth calibration row chooses λ and k, if these are
_MIN_CHOOSING = 19  # rows or more, as 0.95 needs
_ROUNDING = 1e-12  # of sums of probabilities

Probabilities = Float[Tensor, "rows classes"]
Targets = Int[Tensor, "rows"]


@dataclass(frozen=True)
class RankedClasses:
    """The classes of some rows, the most probable first; of equal ones the first class.

    Args:
        order: numbers of the classes.
        probabilities: of these classes.
    """

    order: Int[Tensor, "rows classes"]
    probabilities: Probabilities

    @classmethod
    def of(cls, probabilities: Probabilities) -> "RankedClasses":
        ranked = probabilities.sort(dim=-1, descending=True, stable=True)
        return cls(ranked.indices, ranked.values)

    @property
    def num_classes(self) -> int:
        return self.order.shape[-1]

    def before(self) -> Probabilities:
        """p_1 + … + p_{r−1}, for r = 1 … K."""
        sums = self.probabilities.cumsum(-1)
        return torch.nn.functional.pad(sums[:, :-1], (1, 0))

    def ranks(self, targets: Targets) -> Targets:
        """The rank r of each row's true class, from 1."""
        return (self.order == targets.unsqueeze(-1)).int().argmax(-1) + 1

    def credible_sizes(self, level: float) -> Targets:
        """The size of the smallest set whose predicted probability is `level` or more."""
        return (self.before() < level - _ROUNDING).sum(-1).clamp(min=1)


@dataclass(frozen=True)
class Penalty:
    """What the score of a class adds for its rank r: λ max(0, r − k).

    Args:
        weight: λ.
        free: k, how many classes are without it.
    """

    weight: NotNegative = 0.0
    free: Count = 1

    def scores(self, ranked: RankedClasses) -> Probabilities:
        """s_r of the classes in their ranking; it does not decrease with r."""
        ranks = torch.arange(1, ranked.num_classes + 1, device=ranked.order.device)
        return ranked.before() + self.weight * (ranks - self.free).clamp(min=0) * (ranks > 1)

    def true_scores(self, ranked: RankedClasses, targets: Targets) -> PerRow:
        place = (ranked.ranks(targets) - 1).unsqueeze(-1)
        return self.scores(ranked).gather(-1, place).squeeze(-1)

    def calibrated(
        self, ranked: RankedClasses, targets: Targets, weights: Weights
    ) -> "SetCalibration":
        """The order statistics of the true classes' scores."""
        scores, of_scores = order_statistics(self.true_scores(ranked, targets), weights)
        return SetCalibration(scores, len(targets), of_scores, self)


@dataclass(frozen=True)
class SetCalibration(RanksScores):
    """The scores of calibration rows' true classes.

    Args:
        scores: in increasing order; of many rows only evenly spread order statistics.
        rows: number of rows with these scores.
        weights: of the scores; () if each is 1.
    """

    scores: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    rows: Count
    weights: Annotated[tuple[Positive, ...], Len(0, MAX_RESIDUALS)] = ()
    penalty: Penalty = field(default_factory=Penalty)

    @property
    def ranked(self) -> tuple[float, ...]:
        return self.scores

    def sizes(self, ranked: RankedClasses, level: float) -> Targets:
        """The size of each conformal set: its classes have scores up to that of the level.

        It is at least 1, and the number of all classes if the calibration rows are too few.
        """
        return (self.penalty.scores(ranked) <= self.score(level)).sum(-1)

    def describe(self) -> Json:
        return {
            "rows": self.rows,
            "penalty": self.penalty.weight,
            "free_classes": self.penalty.free,
        }


def fit_sets(probabilities: Probabilities, targets: Targets, weights: Weights) -> SetCalibration:
    """Rank the scores of rows that no weight was fitted to.

    Every fifth row chooses λ and k, and the others are ranked: a choice by the ranked rows would
    favour thresholds that are low by chance, and their coverage would be below the level. Of two
    classes only one can be penalised, which changes no set; then all rows are ranked.
    """
    rows, penalty = [probabilities, targets, weights], Penalty()
    choosing = torch.arange(len(targets), device=targets.device) % _CHOOSING == 0
    if probabilities.shape[-1] > 2 and int(choosing.sum()) >= _MIN_CHOOSING:
        penalty = choose_penalty(*(values[choosing] for values in rows))
        rows = [values[~choosing] for values in rows]
    return penalty.calibrated(RankedClasses.of(rows[0]), *rows[1:])


def choose_penalty(probabilities: Probabilities, targets: Targets, weights: Weights) -> Penalty:
    """The least penalty whose sets are not clearly larger than the smallest ones on some rows.

    The size is the mean over three levels. Clearly: by more than a standard error of the paired
    difference (the rule of one standard error: Breiman et al. 1984, §3.4.3). k is the number of
    most probable classes that contain the truth at one of the levels, as the paper chooses it.
    """
    ranked = RankedClasses.of(probabilities)
    ordered = sorted(ranked.ranks(targets).tolist())
    places = [min(conformal_rank(len(ordered), level), len(ordered)) for level in _LEVELS]
    free = sorted({ordered[place - 1] for place in places}, reverse=True)
    # none, then the least first
    penalties = [Penalty(), *(Penalty(weight, k) for weight, k in product(PENALTIES[1:], free))]
    sizes = []
    for penalty in penalties:
        sets = penalty.calibrated(ranked, targets, weights)
        each = torch.stack([sets.sizes(ranked, level).double() for level in _LEVELS])
        sizes.append(each.mean(0))
    best = min(sizes, key=lambda each: mean(each, weights))
    return next(
        penalty
        for penalty, each in zip(penalties, sizes, strict=True)
        if not paired(each, best, weights).is_clear
    )
