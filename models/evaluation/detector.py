"""Out-of-distribution scores per row, and the threshold above which a row is flagged.

Tables have the score of their features alone (`models.out_of_distribution`). Forecasts, versions of
earlier releases and comparisons between methods have a score of the predictive mixture, so that
every sampler and method has it. `benchmarks/out_of_distribution.py` compares it with others.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from models.config import FALSE_ALARMS
from models.config.ranges import Count, Number, Probability, Text
from models.evaluation.conformal_rank import conformal_rank, weighted_place
from models.evaluation.exact_tests import highest_flagged
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture

SURPRISE = "surprise"
"""The name of the score of the features alone: `models.out_of_distribution`, no mixture's."""

_LEAST_RATE = 1e-6  # of a version that does not say how many rows it rests on

NUMBER_SCORES: Mapping[str, Callable[[NumberMixture], Float[Tensor, "rows"]]] = {
    "epistemic_variance": lambda mixture: mixture.epistemic()
}
CLASS_SCORES: Mapping[str, Callable[[CategoricalMixture], Float[Tensor, "rows"]]] = {
    "total_entropy": CategoricalMixture.total_entropy,
    "mutual_information": CategoricalMixture.mutual_information,  # of versions of release 0.1
}

DEFAULT_SCORES: Mapping[str, str] = {
    "regression": "epistemic_variance",
    "forecasting": "epistemic_variance",
    "classification": "total_entropy",
}
"""By task, the score of the predictive mixture (docs/method.md)."""


def ood_score(mixture: Mixture, score: str) -> Float[Tensor, "rows"]:
    """The score of this name for every row; higher is more unlike training."""
    if isinstance(mixture, CategoricalMixture):
        return CLASS_SCORES[score](mixture)
    return NUMBER_SCORES[score](mixture)


@dataclass(frozen=True)
class Detector:
    """Flags rows whose score is above a threshold.

    Args:
        score: name of the score.
        false_alarm_rate: probability that a row like those of training is flagged.
        rows: number of rows that the threshold was fitted to, or their weight if that is less; 0 if
            unknown, as in release 0.1.
    """

    score: Text
    threshold: Number = math.inf
    false_alarm_rate: Probability = FALSE_ALARMS
    rows: Count = 0

    @classmethod
    def fit(
        cls,
        score: str,
        usual: Float[np.ndarray, "rows"],
        rate: float,
        weights: Float[np.ndarray, "rows"] | None = None,
    ) -> "Detector":
        """Fit the threshold: a usual row exceeds it with a probability of at most `rate`.

        It is the ⌈(1 − rate)(n + 1)⌉-th smallest of n usual scores (Vovk et al. 2005, Algorithmic
        Learning, §2.2). With fewer than 1/rate − 1 rows it is the largest of these scores, and
        `false_alarm_rate` is 1/(n + 1). With weights n is their sum.

        Args:
            usual: scores of in-distribution rows that no weight was fitted to; infinite for rows
                that are flagged whatever their score. Of these there may be more than the rate
                allows: then the threshold is the largest other score, and `false_alarm_rate` says
                how often rows are flagged.
            weights: of these rows: one of weight w counts as w rows.
        """
        each = np.ones(len(usual)) if weights is None else weights.astype(np.float64)
        usual, each = usual[each > 0], each[each > 0]
        order = np.argsort(usual, kind="stable")
        others = int(np.isfinite(usual).sum()) or len(usual)
        place = min(weighted_place(each[order], 1 - rate), others - 1)
        above = float(each[order][place + 1 :].sum())
        rate = max(rate, (above + 1) / (float(each.sum()) + 1))
        return cls(score, float(usual[order[place]]), rate, min(len(usual), int(each.sum())))

    def highest_rate(self) -> float:
        """An upper bound on the share of usual rows that this threshold flags.

        `false_alarm_rate` is its mean over the choice of the rows that the threshold was fitted to.
        For a fraction `ALARM_RATE` of such choices the share is above this bound. If the number of
        these rows is unknown, the fewest that allow the rate give the highest bound.
        """
        rows = self.rows or max(round(1 / max(self.false_alarm_rate, _LEAST_RATE)) - 1, 1)
        rank = min(conformal_rank(rows, 1 - self.false_alarm_rate), rows)
        return highest_flagged(rows, rank)

    def flags(self, scores: Float[np.ndarray, "rows"]) -> np.ndarray:
        """Which rows are unlike those of training; NaN is flagged, too."""
        return ~(scores <= self.threshold)
