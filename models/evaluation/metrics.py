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
from models.evaluation.calibration_error import (
    equal_counts,
    equal_widths,
    expected_calibration_error,
)
from models.evaluation.class_scores import class_row_scores
from models.evaluation.group_coverage import GROUP, PREDICTED
from models.evaluation.reliability import confidence_counts, pit_histogram, reliability_bins
from models.evaluation.set_scores import set_row_scores
from models.evaluation.standard_errors import class_errors, number_errors
from models.evaluation.weighting import (
    WEIGHT,
    Weights,
    mean,
    split_weights,
    total,
)
from models.prediction.number_mixture import NumberMixture
from models.prediction.prediction import epistemic_share
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
CONFORMAL_SCORE = "conformal_score"  # how far a target is from its prediction
CRPS_SAMPLES = 100  # the score's cost grows with the square of the samples

PerRowScores = dict[str, Tensor]


def row_scores(
    labelled: LabelledMixture, calibration: Calibration | None, *, by_class: bool = False
) -> PerRowScores:
    """The scores of each row: `regression_scores` or `classification_scores`, and its weight.

    Args:
        by_class: whether to add what `models.evaluation.class_scores`, `set_scores` and
            `group_coverage` read.
    """
    scores = _row_scores(labelled, calibration)
    mixture = labelled.mixture
    if by_class and isinstance(mixture, CategoricalMixture):
        assert calibration is None or isinstance(calibration, ClassCalibration)
        final = mixture if calibration is None else calibration.apply(mixture)
        sets = None if calibration is None else calibration.sets
        scores |= class_row_scores(final.mean(), labelled.targets)
        scores |= set_row_scores(final.mean(), labelled.targets, sets, COVERAGE_LEVELS)
    if by_class and isinstance(mixture, NumberMixture):
        scores[PREDICTED] = mixture.mean()
    if labelled.groups is not None:
        scores[GROUP] = labelled.groups.double()
    return scores if labelled.weights is None else scores | {WEIGHT: labelled.weights}


def _row_scores(labelled: LabelledMixture, calibration: Calibration | None) -> PerRowScores:
    mixture, targets = labelled.mixture, labelled.targets
    if isinstance(mixture, CategoricalMixture):
        assert calibration is None or isinstance(calibration, ClassCalibration)
        return classification_scores(mixture, targets, calibration)
    assert not isinstance(calibration, ClassCalibration)
    return regression_scores(mixture, targets, calibration, labelled.start, labelled.groups)


def regression_scores(
    mixture: NumberMixture,
    targets: Float[Tensor, "rows"],
    calibration: AnyNumberCalibration | None = None,
    start: int = 0,
    groups: Int[Tensor, "rows"] | None = None,
) -> dict[str, Float[Tensor, "rows"]]:
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
        bounds = calibration.intervals(mixture, COVERAGE_LEVELS, groups)
        scores |= _interval_scores("conformal_", targets, bounds)
        scores[CONFORMAL_SCORE] = calibration.scores(mixture, targets, start)
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
    """Means of the per-row scores under their public names; None for infinite widths.

    `standard_errors` are right if the rows are independent.
    """
    scores, weights = split_weights(scores)
    means = {name: mean(values, weights) for name, values in scores.items()}
    metrics = {
        **count_rows(scores["mae"], weights),
        "log_likelihood": means["log_likelihood"],
        "rmse": means["squared_error"] ** 0.5,
        "mae": means["mae"],
        "crps": means["crps"],
        "coverage": _by_level(means, "coverage"),
        "interval_width": _by_level(means, "width"),
        "epistemic_share": means["epistemic_share"],
        "pit": pit_histogram(scores["pit"], weights),
        "standard_errors": number_errors(scores, COVERAGE_LEVELS, weights),
    }
    if "uncalibrated_log_likelihood" not in means:
        return metrics
    widths = _by_level(means, "conformal_width")
    return metrics | {
        "conformal_coverage": _by_level(means, "conformal_coverage"),
        "conformal_width": {k: v if math.isfinite(v) else None for k, v in widths.items()},
        "uncalibrated": {
            "log_likelihood": means["uncalibrated_log_likelihood"],
            "coverage": {"0.9": means["uncalibrated_coverage_0.9"]},
        },
    }


def count_rows(values: Tensor, weights: Weights | None) -> Json:
    """`rows`, the number of rows, and with weights `weight`, the number that they count as."""
    counted: Json = {"rows": len(values)}
    return counted if weights is None else counted | {"weight": total(values, weights)}


def _by_level(means: dict[str, float], name: str) -> dict[str, float]:
    return {f"{level:g}": means[f"{name}_{level:g}"] for level in COVERAGE_LEVELS}


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
    scores, weights = split_weights(scores)
    confidence, correct = scores["confidence"], scores["correct"]
    widths, counts = (
        expected_calibration_error(confidence, correct, bins)
        for bins in (equal_widths(confidence, weights), equal_counts(confidence, weights))
    )
    metrics = {
        **count_rows(correct, weights),
        "accuracy": mean(correct, weights),
        "log_likelihood": mean(scores["log_likelihood"], weights),
        "brier": mean(scores["brier"], weights),
        **widths.describe("ece"),
        **counts.describe("ece_adaptive"),
        "epistemic_share": mean(scores["epistemic_share"], weights),
        "reliability": reliability_bins(confidence, correct, weights),
        "confidence_counts": confidence_counts(confidence, correct, weights=weights),
        "standard_errors": class_errors(scores, weights)
        | {"ece_debiased": widths.standard_error, "ece_adaptive_debiased": counts.standard_error},
    }
    if "uncalibrated_log_likelihood" not in scores:
        return metrics
    confidence, correct = scores["uncalibrated_confidence"], scores["uncalibrated_correct"]
    before = expected_calibration_error(confidence, correct, equal_widths(confidence, weights))
    log_likelihood = mean(scores["uncalibrated_log_likelihood"], weights)
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


def auroc(
    usual: Float[Tensor, "usual"], unlike: Float[Tensor, "unlike"], weights: Weights | None = None
) -> float:
    """P(a score of `unlike` is above one of `usual`) + ½ P(they are equal), over all pairs.

    0.5 for scores without information, such as the variance 0 of a single weight vector. The area
    under the ROC curve is the Mann–Whitney statistic: Hanley and McNeil 1982.

    Args:
        weights: of the usual rows.
    """
    ordered, order = usual.sort()
    below = torch.searchsorted(ordered, unlike)
    not_above = torch.searchsorted(ordered, unlike, right=True)
    if weights is None:
        return float((below + not_above).double().mean() / (2 * len(usual)))
    counts = torch.nn.functional.pad(weights.double()[order].cumsum(0), (1, 0))
    return float((counts[below] + counts[not_above]).mean() / (2 * counts[-1]))


def _epistemic_share(mixture: Mixture) -> Float[Tensor, "rows"]:
    """The share as predictions have it, so that served ones can be compared with its mean."""
    variances = mixture.epistemic(), mixture.aleatoric()
    return torch.from_numpy(epistemic_share(*(one.cpu().numpy() for one in variances)))
