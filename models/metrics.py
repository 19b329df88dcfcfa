"""Scores of predictions on labelled rows, in the target's own units.

Proper scores: log likelihood (higher is better), CRPS and Brier (lower is better). Coverage is the
share of targets inside the central interval of each level. Source: Gneiting and Raftery 2007.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.prediction.prediction import epistemic_share
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture
from models.reliability import pit_histogram, reliability_bins

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
ECE_BINS = 15  # as usual since Guo et al. 2017
CRPS_SAMPLES = 100  # the score's cost grows with the square of the samples

PerRowScores = dict[str, Tensor]


def regression_scores(
    mixture: GaussianMixture, targets: Float[Tensor, "rows"]
) -> dict[str, Float[Tensor, "rows"]]:
    """Per row: log likelihood, squared and absolute error, CRPS, width, share, 1 where covered."""
    error = mixture.mean() - targets
    few = GaussianMixture(mixture.means[:CRPS_SAMPLES], mixture.variances[:CRPS_SAMPLES])
    scores = {
        "log_likelihood": mixture.log_prob(targets),
        "squared_error": error.square(),
        "mae": error.abs(),
        "crps": few.crps(targets),
        "epistemic_share": _epistemic_share(mixture),
    }
    below = scores["pit"] = mixture.cdf(targets)
    for level in COVERAGE_LEVELS:
        tail = 0.5 * (1 - level)
        scores[f"coverage_{level:g}"] = ((below > tail) & (below < 1 - tail)).double()
    scores["width"] = mixture.quantile(0.95) - mixture.quantile(0.05)
    return scores


def regression_metrics(scores: dict[str, Float[Tensor, "rows"]]) -> dict[str, object]:
    """Means of the per-row scores under the names of the contract."""
    mean = {name: float(values.mean()) for name, values in scores.items()}
    coverage = {f"{level:g}": mean[f"coverage_{level:g}"] for level in COVERAGE_LEVELS}
    return {
        "rows": len(scores["mae"]),
        "log_likelihood": mean["log_likelihood"],
        "rmse": mean["squared_error"] ** 0.5,
        "mae": mean["mae"],
        "crps": mean["crps"],
        "coverage": coverage,
        "interval_width": {"0.9": mean["width"]},
        "epistemic_share": mean["epistemic_share"],
        "pit": pit_histogram(scores["pit"]),
    }


def classification_scores(
    mixture: CategoricalMixture, targets: Int[Tensor, "rows"]
) -> dict[str, Float[Tensor, "rows"]]:
    """Per row: log likelihood, 1 where right, Brier score, confidence of the label, share."""
    probs = mixture.mean()
    confidence, label = probs.max(-1)
    truth = torch.nn.functional.one_hot(targets, probs.shape[-1])
    return {
        "log_likelihood": mixture.log_prob(targets),
        "correct": (label == targets).double(),
        "brier": (probs - truth).square().sum(-1),
        "confidence": confidence,
        "epistemic_share": _epistemic_share(mixture),
    }


def classification_metrics(
    scores: dict[str, Float[Tensor, "rows"]],
) -> dict[str, object]:
    """Means of the per-row scores, and the expected calibration error."""
    return {
        "rows": len(scores["correct"]),
        "accuracy": float(scores["correct"].mean()),
        "log_likelihood": float(scores["log_likelihood"].mean()),
        "brier": float(scores["brier"].mean()),
        "ece": expected_calibration_error(scores["confidence"], scores["correct"]),
        "epistemic_share": float(scores["epistemic_share"].mean()),
        "reliability": reliability_bins(scores["confidence"], scores["correct"]),
    }


def auroc(usual: Float[Tensor, "usual"], strange: Float[Tensor, "strange"]) -> float:
    """P(a strange score is above a usual one) + ½ P(they are equal), over all pairs.

    0.5 for scores that tell nothing, such as the variance 0 of a single weight vector. The area
    under the ROC curve is the Mann–Whitney statistic: Hanley and McNeil 1982.
    """
    ordered = usual.sort().values
    below = torch.searchsorted(ordered, strange)
    not_above = torch.searchsorted(ordered, strange, right=True)
    return float((below + not_above).double().mean() / (2 * len(usual)))


def _epistemic_share(mixture: Mixture) -> Float[Tensor, "rows"]:
    """As every prediction tells it, so that what is served can be compared with its mean here."""
    variances = {"epistemic": mixture.epistemic(), "aleatoric": mixture.aleatoric()}
    arrays = {name: variance.cpu().numpy() for name, variance in variances.items()}
    return torch.from_numpy(epistemic_share(arrays))


def expected_calibration_error(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"]
) -> float:
    """Σ over equal-width bins of (share of rows) · |accuracy − mean confidence|."""
    bins = (confidence * ECE_BINS).long().clamp_max(ECE_BINS - 1)
    gap = torch.zeros(ECE_BINS, dtype=torch.float64)
    gap.index_add_(0, bins.cpu(), (correct - confidence).double().cpu())
    return float(gap.abs().sum() / len(confidence))
