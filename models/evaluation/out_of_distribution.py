"""Out-of-distribution scores per row, and the threshold above which a row is flagged.

All scores are functions of the predictive mixture, so every sampler and method has them.
`benchmarks/out_of_distribution.py` compares them, for the choice of the default.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import FALSE_ALARMS
from models.config.ranges import Count, Number, Probability, Text
from models.evaluation.conformal_rank import conformal_rank, weighted_place
from models.evaluation.exact_tests import highest_flagged
from models.prediction.number_mixture import NumberMixture, variance
from models.prediction.predictive import CategoricalMixture, Mixture

SURPRISE = "surprise"
"""The name of the score of the features alone: `models.out_of_distribution`, no mixture's."""

_LEAST_RATE = 1e-6  # of a version that does not say how many rows it rests on


def logit_disagreement(mixture: CategoricalMixture) -> Float[Tensor, "rows"]:
    """mean_k var_s (l_sk − mean_j l_sj): how much the samples' logits differ.

    A constant added to all logits of a sample changes no probability, so each sample's logits are
    centred first. Unlike mutual information it keeps growing if the samples are certain.
    """
    logits = mixture.logits
    return variance(logits - logits.mean(-1, keepdim=True), correction=0).mean(-1)


def relative_disagreement(mixture: CategoricalMixture) -> Float[Tensor, "rows"]:
    """`logit_disagreement` ÷ var_k mean_s l_sk, the variance of the classes' mean logits."""
    spread = mixture.logits.mean(0).var(-1, correction=0)
    return logit_disagreement(mixture) / spread.clamp_min(torch.finfo(spread.dtype).tiny)


def energy(mixture: CategoricalMixture) -> Float[Tensor, "rows"]:
    """−log Σ_k exp(mean_s l_sk) (Liu et al. 2020, arXiv 2010.03759, eq. 4)."""
    return -mixture.logits.mean(0).logsumexp(-1)


def noise_disagreement(mixture: NumberMixture) -> Float[Tensor, "rows"]:
    """var_s log s²_s: how much the samples' noise differs, independent of its unit."""
    return variance(mixture.noise_variances().log(), correction=0)


def epistemic_share(mixture: NumberMixture) -> Float[Tensor, "rows"]:
    """Epistemic ÷ total variance."""
    return mixture.epistemic() / mixture.total()


NUMBER_SCORES: Mapping[str, Callable[[NumberMixture], Float[Tensor, "rows"]]] = {
    "epistemic_variance": lambda mixture: mixture.epistemic(),
    "epistemic_share": epistemic_share,
    "total_variance": lambda mixture: mixture.total(),
    "noise_disagreement": noise_disagreement,
}
CLASS_SCORES: Mapping[str, Callable[[CategoricalMixture], Float[Tensor, "rows"]]] = {
    "mutual_information": CategoricalMixture.mutual_information,
    "total_entropy": CategoricalMixture.total_entropy,
    "logit_disagreement": logit_disagreement,
    "relative_disagreement": relative_disagreement,
    "energy": energy,
}


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
        found = max(rate, (above + 1) / (float(each.sum()) + 1))
        return cls(score, float(usual[order[place]]), found, min(len(usual), int(each.sum())))

    def highest_rate(self, error: float) -> float:
        """An upper bound on the share of usual rows that this threshold flags.

        `false_alarm_rate` is its mean over the choice of the rows that the threshold was fitted to.
        The share is above this bound for a fraction `error` of such choices. If the number of these
        rows is unknown, the fewest that allow the rate give the highest bound.
        """
        rows = self.rows or max(round(1 / max(self.false_alarm_rate, _LEAST_RATE)) - 1, 1)
        rank = min(conformal_rank(rows, 1 - self.false_alarm_rate), rows)
        return highest_flagged(rows, rank, error)

    def flags(self, scores: Float[np.ndarray, "rows"]) -> np.ndarray:
        """Which rows are unlike those of training; NaN is flagged, too."""
        return ~(scores <= self.threshold)
