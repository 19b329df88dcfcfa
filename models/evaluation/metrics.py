"""Scores of predictions on labelled rows, in the target's own units.

Proper scores: log likelihood (higher is better), CRPS and Brier (lower is better). Coverage is the
share of targets inside the central interval of each level. Source: Gneiting and Raftery 2007.
All scores of a calibrated model are of its calibrated predictions; `uncalibrated` has those without
calibration.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import Json
from models.evaluation.calibration import (
    AnyNumberCalibration,
    Bounds,
    Calibration,
    ClassCalibration,
    LabelledMixture,
)
from models.evaluation.reliability import confidence_counts, pit_histogram, reliability_bins
from models.prediction.number_mixture import NumberMixture
from models.prediction.prediction import epistemic_share
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
ECE_BINS = 15  # as usual since Guo et al. 2017
CRPS_SAMPLES = 100  # the score's cost grows with the square of the samples

PerRowScores = dict[str, Tensor]


def row_scores(labelled: LabelledMixture, calibration: Calibration | None) -> PerRowScores:
    """The scores of each row: `regression_scores` or `classification_scores`."""
    mixture, targets = labelled.mixture, labelled.targets
    if isinstance(mixture, CategoricalMixture):
        assert calibration is None or isinstance(calibration, ClassCalibration)
        return classification_scores(mixture, targets, calibration)
    assert not isinstance(calibration, ClassCalibration)
    return regression_scores(mixture, targets, calibration, labelled.start)


def regression_scores(
    mixture: NumberMixture,
    targets: Float[Tensor, "rows"],
    calibration: AnyNumberCalibration | None = None,
    start: int = 0,
) -> dict[str, Float[Tensor, "rows"]]:
    """Per row: log likelihood, errors, CRPS, epistemic share, PIT, coverage and width by level.

    `uncertainty` is the total standard deviation, by which a row is answered or left to a human.

    Args:
        start: number of the first row, from which randomised PIT values follow.
    """
    raw, mixture = mixture, mixture if calibration is None else calibration.apply(mixture)
    error = mixture.mean() - targets
    scores = {
        "log_likelihood": mixture.log_prob(targets),
        "squared_error": error.square(),
        "mae": error.abs(),
        "crps": mixture.first(CRPS_SAMPLES).crps(targets),
        "epistemic_share": _epistemic_share(mixture),
        "uncertainty": mixture.total().sqrt(),
        "pit": mixture.pit(targets, start),
    }
    tails = [0.5 * (1 - level) for level in COVERAGE_LEVELS]
    lower, upper = mixture.quantiles([*tails, *(1 - tail for tail in tails)]).chunk(2)
    scores |= _interval_scores("", targets, list(zip(lower, upper, strict=True)))
    if isinstance(mixture, GaussianMixture):  # exact, as quantiles are not
        scores |= coverage(scores["pit"])
    if calibration is not None:
        bounds = calibration.intervals(mixture, COVERAGE_LEVELS)
        scores |= _interval_scores("conformal_", targets, bounds)
        scores["uncalibrated_log_likelihood"] = raw.log_prob(targets)
        scores["uncalibrated_coverage_0.9"] = raw.contains(targets, 0.05, 0.95).double()
    return scores


def _interval_scores(
    kind: str, targets: Float[Tensor, "rows"], bounds: Sequence[Bounds]
) -> PerRowScores:
    """By level: 1 if the interval contains the target, bounds included, else 0; its width."""
    scores = {}
    for level, (lower, upper) in zip(COVERAGE_LEVELS, bounds, strict=True):
        scores[f"{kind}coverage_{level:g}"] = ((lower <= targets) & (targets <= upper)).double()
        scores[f"{kind}width_{level:g}"] = upper - lower
    return scores


def coverage(pit: Float[Tensor, "rows"]) -> dict[str, Float[Tensor, "rows"]]:
    """1 if F(y) says that the target is inside the central interval of a level, else 0."""
    tails = {level: 0.5 * (1 - level) for level in COVERAGE_LEVELS}
    return {
        f"coverage_{level:g}": ((pit > tail) & (pit < 1 - tail)).double()
        for level, tail in tails.items()
    }


def regression_metrics(scores: dict[str, Float[Tensor, "rows"]]) -> Json:
    """Means of the per-row scores under their public names; None for infinite widths."""
    mean = {name: float(values.mean()) for name, values in scores.items()}
    metrics = {
        "rows": len(scores["mae"]),
        "log_likelihood": mean["log_likelihood"],
        "rmse": mean["squared_error"] ** 0.5,
        "mae": mean["mae"],
        "crps": mean["crps"],
        "coverage": _by_level(mean, "coverage"),
        "interval_width": _by_level(mean, "width"),
        "epistemic_share": mean["epistemic_share"],
        "pit": pit_histogram(scores["pit"]),
    }
    if "uncalibrated_log_likelihood" not in mean:
        return metrics
    widths = _by_level(mean, "conformal_width")
    return metrics | {
        "conformal_coverage": _by_level(mean, "conformal_coverage"),
        "conformal_width": {k: v if math.isfinite(v) else None for k, v in widths.items()},
        "uncalibrated": {
            "log_likelihood": mean["uncalibrated_log_likelihood"],
            "coverage": {"0.9": mean["uncalibrated_coverage_0.9"]},
        },
    }


def _by_level(mean: dict[str, float], name: str) -> dict[str, float]:
    return {f"{level:g}": mean[f"{name}_{level:g}"] for level in COVERAGE_LEVELS}


def classification_scores(
    mixture: CategoricalMixture,
    targets: Int[Tensor, "rows"],
    calibration: ClassCalibration | None = None,
) -> dict[str, Float[Tensor, "rows"]]:
    """Per row: log likelihood, 1 if correct, Brier score, confidence in the label, epistemic share.

    `uncertainty` is the total entropy, by which a row is answered or left to a human.
    """
    if calibration is not None:
        raw = classification_scores(mixture, targets)
        return {
            **classification_scores(calibration.apply(mixture), targets),
            "uncalibrated_log_likelihood": raw["log_likelihood"],
            "uncalibrated_confidence": raw["confidence"],
            "uncalibrated_correct": raw["correct"],
        }
    probs = mixture.mean()
    confidence, label = probs.max(-1)
    truth = torch.nn.functional.one_hot(targets, probs.shape[-1])
    return {
        "log_likelihood": mixture.log_prob(targets),
        "correct": (label == targets).double(),
        "brier": (probs - truth).square().sum(-1),
        "confidence": confidence,
        "epistemic_share": _epistemic_share(mixture),
        "uncertainty": mixture.total_entropy(),
    }


def classification_metrics(scores: dict[str, Float[Tensor, "rows"]]) -> Json:
    """Means of the per-row scores, and the expected calibration error with two kinds of bins."""
    metrics = {
        "rows": len(scores["correct"]),
        "accuracy": float(scores["correct"].mean()),
        "log_likelihood": float(scores["log_likelihood"].mean()),
        "brier": float(scores["brier"].mean()),
        "ece": expected_calibration_error(scores["confidence"], scores["correct"]),
        "ece_adaptive": adaptive_calibration_error(scores["confidence"], scores["correct"]),
        "epistemic_share": float(scores["epistemic_share"].mean()),
        "reliability": reliability_bins(scores["confidence"], scores["correct"]),
        "confidence_counts": confidence_counts(scores["confidence"], scores["correct"], ECE_BINS),
    }
    if "uncalibrated_log_likelihood" not in scores:
        return metrics
    ece = expected_calibration_error(
        scores["uncalibrated_confidence"], scores["uncalibrated_correct"]
    )
    log_likelihood = float(scores["uncalibrated_log_likelihood"].mean())
    return metrics | {"uncalibrated": {"log_likelihood": log_likelihood, "ece": ece}}


def summarise(scores: PerRowScores) -> dict[str, Any]:
    """The metrics of per-row scores, of numbers or of classes."""
    return classification_metrics(scores) if "correct" in scores else regression_metrics(scores)


def calibration_error(metrics: Mapping[str, Any]) -> float:
    """How much the stated uncertainty differs from the errors: about 0 for a calibrated model.

    Classes: the expected calibration error. Numbers: mean over `COVERAGE_LEVELS` of |share of
    targets inside the central interval − level|, as Kuleshov et al. 2018 compare quantiles.
    """
    if "ece" in metrics:
        return float(metrics["ece"])
    gaps = [abs(metrics["coverage"][f"{level:g}"] - level) for level in COVERAGE_LEVELS]
    return sum(gaps) / len(gaps)


def auroc(usual: Float[Tensor, "usual"], unlike: Float[Tensor, "unlike"]) -> float:
    """P(a score of `unlike` is above one of `usual`) + ½ P(they are equal), over all pairs.

    0.5 for scores without information, such as the variance 0 of a single weight vector. The area
    under the ROC curve is the Mann–Whitney statistic: Hanley and McNeil 1982.
    """
    ordered = usual.sort().values
    below = torch.searchsorted(ordered, unlike)
    not_above = torch.searchsorted(ordered, unlike, right=True)
    return float((below + not_above).double().mean() / (2 * len(usual)))


def _epistemic_share(mixture: Mixture) -> Float[Tensor, "rows"]:
    """The share as predictions have it, so that served ones can be compared with its mean."""
    variances = {"epistemic": mixture.epistemic(), "aleatoric": mixture.aleatoric()}
    arrays = {name: variance.cpu().numpy() for name, variance in variances.items()}
    return torch.from_numpy(epistemic_share(arrays))


def expected_calibration_error(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"]
) -> float:
    """Σ over equal-width bins of (share of rows) · |accuracy − mean confidence|."""
    bins = (confidence * ECE_BINS).long().clamp(0, ECE_BINS - 1)
    gap = torch.zeros(ECE_BINS, dtype=torch.float64)
    gap.index_add_(0, bins.cpu(), (correct - confidence).double().cpu())
    return float(gap.abs().sum() / len(confidence))


def adaptive_calibration_error(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"]
) -> float:
    """The same with bins of equally many rows, which separate confidences that are close together.

    Source: Nguyen and O'Connor 2015 (arXiv 1508.05154), §3.2.
    """
    bins = reliability_bins(confidence, correct)
    gaps = sum(one["rows"] * abs(one["accuracy"] - one["confidence"]) for one in bins)
    return float(gaps / len(confidence))
