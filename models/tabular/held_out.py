"""A small summary of predictions of held-out rows, which the charts of a model's card show.

The metrics of a version are sums over all of these rows; a chart needs the rows themselves, or the
recall and precision at many thresholds. Both are bounded, because they are stored with the model.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from models.config import Json
from models.evaluation.calibration import AnyNumberCalibration, Calibration, ClassCalibration
from models.evaluation.calibration import LabelledMixture as Labelled
from models.evaluation.class_scores import threshold_curve
from models.evaluation.weighting import Weights
from models.prediction.number_mixture import NumberMixture
from models.prediction.predictive import CategoricalMixture

MOST_NUMBERS = 300  # rows of a scatter plot: more hide each other
MOST_LABELLED = 10_000  # rows that thresholds are counted on, evenly spread
MOST_CLASSES = 20  # with curves, as the confusion table shows
MOST_POINTS = 100  # thresholds of a class
LEVEL = 0.9  # of the intervals
_DIGITS = 6


def most_rows(classes: Sequence[object] | None) -> int:
    """The number of held-out rows that a summary needs at most."""
    return MOST_NUMBERS if classes is None else MOST_LABELLED


def describe_numbers(parts: Iterable[Labelled], calibration: AnyNumberCalibration | None) -> Json:
    """Actual values, predicted means and ends of the central 90 % intervals, in the row order."""
    columns = [_number_columns(part, calibration) for part in parts]
    actual, mean, lower, upper = (np.concatenate(one) for one in zip(*columns, strict=True))
    finite = np.isfinite(np.stack([actual, mean, lower, upper])).all(0)
    named = {"actual": actual, "mean": mean, "lower": lower, "upper": upper}
    return {"level": LEVEL} | {name: _rounded(values[finite]) for name, values in named.items()}


def _number_columns(
    part: Labelled, calibration: AnyNumberCalibration | None
) -> tuple[np.ndarray, ...]:
    assert isinstance(part.mixture, NumberMixture)
    mixture = part.mixture if calibration is None else calibration.apply(part.mixture)
    ends = mixture.quantiles([0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return tuple(values.double().cpu().numpy() for values in (part.targets, mixture.mean(), *ends))


def describe_classes(
    parts: Iterable[Labelled], calibration: ClassCalibration | None, classes: Sequence[object]
) -> Json:
    """By class: recall, precision and false positive rate of the rows whose probability of the
    class is at least the threshold; the most frequent classes first."""
    found = [_class_columns(part, calibration) for part in parts]
    probabilities = torch.cat([one for one, _, _ in found]).cpu()
    targets = torch.cat([one for _, one, _ in found]).cpu()
    known = [one for _, _, one in found if one is not None]
    weights = torch.cat(known).cpu() if known else None
    order = _by_rows(targets, len(classes))
    curves = [
        {"label": classes[k], **_curve_of(probabilities[:, k], targets == k, weights)}
        for k in order[:MOST_CLASSES]
    ]
    return {"rows": len(targets), "curves": curves}


def _class_columns(
    part: Labelled, calibration: ClassCalibration | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    assert isinstance(part.mixture, CategoricalMixture)
    mixture = part.mixture if calibration is None else calibration.apply(part.mixture)
    return mixture.mean(), part.targets, part.weights


def _by_rows(targets: Int[Tensor, "rows"], num_classes: int) -> list[int]:
    """Numbers of the classes that have rows and that other rows lack, the most frequent first."""
    counts = torch.bincount(targets, minlength=num_classes).tolist()
    some = [k for k in range(num_classes) if 0 < counts[k] < len(targets)]
    return sorted(some, key=lambda k: (-counts[k], k))


def _curve_of(scores: Tensor, positive: Tensor, weights: Weights | None) -> Json:
    """The curve at no more than `MOST_POINTS` thresholds, with both ends of it."""
    at, recall, precision, share = threshold_curve(scores, positive, weights)
    own = torch.ones(len(scores)).double() if weights is None else weights.double()
    prior = float(own[positive].sum() / own.sum())
    false_positives = ((share - prior * recall) / (1 - prior)).clamp(0, 1)
    kept = torch.linspace(0, len(at) - 1, min(len(at), MOST_POINTS)).round().long()
    named = {
        "threshold": at,
        "recall": recall,
        "precision": precision,
        "false_positive_rate": false_positives,
    }
    return {"share": prior} | {name: _rounded(v[kept].numpy()) for name, v in named.items()}


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]


def describe(
    parts: Iterable[Labelled], calibration: Calibration | None, classes: Sequence[object] | None
) -> Json:
    """`describe_numbers` or `describe_classes`."""
    if classes is None:
        assert not isinstance(calibration, ClassCalibration)
        return describe_numbers(parts, calibration)
    assert calibration is None or isinstance(calibration, ClassCalibration)
    return describe_classes(parts, calibration, classes)
