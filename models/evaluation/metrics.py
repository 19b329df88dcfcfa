"""Scores of predictions on labelled rows, in the target's own units.

Proper scores: log likelihood (higher is better), CRPS and Brier (lower is better). Coverage is the
share of targets inside the central interval of each level. Source: Gneiting and Raftery 2007.
All scores of a calibrated model are of its calibrated predictions; `uncalibrated` has those without
calibration. A row of weight w counts as w rows: per-row scores have their rows' weights, if there
are any, as the entry `weight`, and their summaries are weighted.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from models.config import Json
from models.evaluation.calibration import (
    AnyNumberCalibration,
    Bounds,
    Calibration,
    ClassCalibration,
    LabelledMixture,
)
from models.evaluation.class_scores import class_row_scores, set_row_scores
from models.evaluation.crps import mixture_crps
from models.evaluation.group_coverage import GROUP, PREDICTED
from models.evaluation.reliability import (
    confidence_counts,
    equal_counts,
    equal_widths,
    expected_calibration_error,
    pit_histogram,
    reliability_bins,
)
from models.evaluation.weighting import (
    WEIGHT,
    PerRow,
    Weights,
    mean,
    means_by_level,
    of_mean,
    of_root,
    of_share,
    split_weights,
)
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
CONFORMAL_SCORE = "conformal_score"  # how far a target is from its prediction
CRPS_SAMPLES = 100  # the score's cost grows with the square of the samples

_INTERVALS = {  # names of metrics by level, and of the per-row scores whose means they are
    "coverage": "coverage",
    "conformal_coverage": "conformal_coverage",
    "open_coverage": "open_coverage",
    "conformal_open_coverage": "conformal_open_coverage",
    "interval_width": "width",
    "conformal_width": "conformal_width",
}

PerRowScores = dict[str, Tensor]


def row_scores(
    labelled: LabelledMixture, calibration: Calibration | None, *, by_class: bool = False
) -> PerRowScores:
    """The scores of each row: `regression_scores` or `classification_scores`, and its weight.

    Args:
        by_class: whether to add what `models.evaluation.class_scores` and `group_coverage` read.
    """
    mixture, targets = labelled.mixture, labelled.targets
    if isinstance(mixture, CategoricalMixture):
        assert calibration is None or isinstance(calibration, ClassCalibration)
        scores = classification_scores(mixture, targets, calibration)
        if by_class:
            final = (mixture if calibration is None else calibration.apply(mixture)).mean()
            sets = None if calibration is None else calibration.sets
            scores |= class_row_scores(final, targets)
            scores |= set_row_scores(final, targets, sets, COVERAGE_LEVELS)
    else:
        assert not isinstance(calibration, ClassCalibration)
        start, groups = labelled.start, labelled.groups
        scores = regression_scores(mixture, targets, calibration, start, groups)
        if by_class:
            scores[PREDICTED] = mixture.mean()
    if labelled.groups is not None:
        scores[GROUP] = labelled.groups.double()
    return scores if labelled.weights is None else scores | {WEIGHT: labelled.weights}


def regression_scores(
    mixture: NumberMixture,
    targets: PerRow,
    calibration: AnyNumberCalibration | None = None,
    start: int = 0,
    groups: Int[Tensor, "rows"] | None = None,
) -> PerRowScores:
    """Per row: log likelihood, errors, CRPS, epistemic share, PIT, coverage and width by level.

    `uncertainty` is the total standard deviation, by which a row is answered or left to a human.

    Args:
        start: number of the first row, from which randomised PIT values follow.
        groups: the number of each row's group, if the calibration has groups.
    """
    raw, mixture = mixture, mixture if calibration is None else calibration.apply(mixture)
    error = mixture.mean() - targets
    scores = {
        "log_likelihood": mixture.log_prob(targets),
        "squared_error": error.square(),
        "mae": error.abs(),
        "crps": mixture_crps(mixture.first(CRPS_SAMPLES), targets),
        "epistemic_share": _epistemic_share(mixture),
        "uncertainty": mixture.total().sqrt(),
        "pit": mixture.pit(targets, start),
    }
    ends = mixture.intervals(COVERAGE_LEVELS)
    integer = mixture.target.integer
    scores |= interval_scores("", targets, list(zip(*ends, strict=True)), integer=integer)
    if mixture.is_gaussian:  # exact, as quantiles are not
        scores |= coverage(scores["pit"])
    if calibration is not None:
        bounds = calibration.intervals(mixture, COVERAGE_LEVELS, groups)
        scores |= interval_scores("conformal_", targets, bounds, integer=integer)
        scores[CONFORMAL_SCORE] = calibration.scores(mixture, targets, start)
        scores["uncalibrated_log_likelihood"] = raw.log_prob(targets)
        scores["uncalibrated_coverage_0.9"] = inside(targets, *raw.intervals([0.9])[:, 0])
    return scores


def interval_scores(
    kind: str, targets: PerRow, bounds: Sequence[Bounds], *, integer: bool = False
) -> PerRowScores:
    """By level: 1 if the interval contains the target, bounds included, else 0; its width.

    Args:
        integer: whether to add `open_coverage`, which leaves out bounds: whole numbers have a
            probability.
    """
    scores = {}
    for level, (lower, upper) in zip(COVERAGE_LEVELS, bounds, strict=True):
        scores[f"{kind}coverage_{level:g}"] = inside(targets, lower, upper)
        scores[f"{kind}width_{level:g}"] = upper - lower
        if integer:
            is_open = (lower < targets) & (targets < upper)
            scores[f"{kind}open_coverage_{level:g}"] = is_open.double()
    return scores


def inside(targets: Tensor, lower: PerRow, upper: PerRow) -> Tensor:
    """1 where a target is in the interval, bounds included, else 0."""
    return ((lower <= targets) & (targets <= upper)).double()


def coverage(pit: PerRow) -> PerRowScores:
    """1 if F(y) says that the target is inside the central interval of a level, else 0."""
    tails = {level: 0.5 * (1 - level) for level in COVERAGE_LEVELS}
    return {
        f"coverage_{level:g}": ((pit > tail) & (pit < 1 - tail)).double()
        for level, tail in tails.items()
    }


def regression_metrics(scores: PerRowScores) -> Json:
    """Means of the per-row scores under their public names; None for infinite widths.

    `standard_errors` are right if the rows are independent.
    """
    rows, weights = split_weights(scores)
    names = ("log_likelihood", "mae", "crps", "epistemic_share")
    by_level, errors_by_level = means_by_level(rows, weights, COVERAGE_LEVELS, _INTERVALS)
    metrics: Json = {
        **_counts(scores, weights),
        **{name: mean(rows[name], weights) for name in names},
        "rmse": mean(rows["squared_error"], weights) ** 0.5,
        "pit": pit_histogram(rows["pit"], weights),
        "standard_errors": {
            **{name: of_mean(rows[name], weights) for name in names},
            "rmse": of_root(rows["squared_error"], weights),
            **errors_by_level,
        },
        **by_level,
    }
    if "uncalibrated_log_likelihood" not in rows:
        return metrics
    widths = metrics["conformal_width"].items()
    return metrics | {
        "conformal_width": {k: v if math.isfinite(v) else None for k, v in widths},
        "uncalibrated": {
            "log_likelihood": mean(rows["uncalibrated_log_likelihood"], weights),
            "coverage": {"0.9": mean(rows["uncalibrated_coverage_0.9"], weights)},
        },
    }


def _counts(scores: PerRowScores, weights: Weights) -> Json:
    """`rows`, the number of rows, and with weights `weight`, the number that they count as."""
    counted: Json = {"rows": len(weights)}
    return counted | {"weight": float(weights.sum())} if WEIGHT in scores else counted


def classification_scores(
    mixture: CategoricalMixture,
    targets: Int[Tensor, "rows"],
    calibration: ClassCalibration | None = None,
) -> PerRowScores:
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


def classification_metrics(scores: PerRowScores) -> Json:
    """Means of the per-row scores, and the expected calibration error with two kinds of bins."""
    rows, weights = split_weights(scores)
    confidence, correct = rows["confidence"], rows["correct"]
    widths, counts = (
        expected_calibration_error(confidence, correct, bins)
        for bins in (equal_widths(confidence, weights), equal_counts(confidence, weights))
    )
    names = ("log_likelihood", "brier", "epistemic_share")
    metrics = {
        **_counts(scores, weights),
        "accuracy": mean(correct, weights),
        **{name: mean(rows[name], weights) for name in names},
        **widths.describe("ece"),
        **counts.describe("ece_adaptive"),
        "reliability": reliability_bins(confidence, correct, weights),
        "confidence_counts": confidence_counts(confidence, correct, weights=weights),
        "standard_errors": {
            "accuracy": of_share(correct, weights),
            **{name: of_mean(rows[name], weights) for name in names},
            "ece_debiased": widths.standard_error,
            "ece_adaptive_debiased": counts.standard_error,
        },
    }
    if "uncalibrated_log_likelihood" not in rows:
        return metrics
    confidence, correct = rows["uncalibrated_confidence"], rows["uncalibrated_correct"]
    before = expected_calibration_error(confidence, correct, equal_widths(confidence, weights))
    log_likelihood = mean(rows["uncalibrated_log_likelihood"], weights)
    return metrics | {"uncalibrated": {"log_likelihood": log_likelihood, **before.describe("ece")}}


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


def epistemic_share(epistemic: np.ndarray, aleatoric: np.ndarray) -> np.ndarray:
    """Epistemic ÷ total variance per row, in [0, 1]; the variances of classes are added."""
    if epistemic.ndim > 1:
        epistemic, aleatoric = epistemic.sum(1), aleatoric.sum(1)
    total = epistemic + aleatoric
    with np.errstate(invalid="ignore"):  # ∞ ÷ ∞ in a diverging forecast is NaN
        return np.divide(epistemic, total, out=np.zeros_like(total), where=total > 0)


def _epistemic_share(mixture: Mixture) -> PerRow:
    """The share as predictions have it, so that served ones can be compared with its mean."""
    variances = mixture.epistemic(), mixture.aleatoric()
    return torch.from_numpy(epistemic_share(*(part.cpu().numpy() for part in variances)))
