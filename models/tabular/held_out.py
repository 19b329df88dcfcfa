"""A small summary of predictions of held-out rows, which the charts of a model's card show.

The metrics of a version are sums over all of these rows; a chart needs the rows themselves, or the
recall and precision at many thresholds. Both are bounded, because they are stored with the model.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from models.config import Json
from models.evaluation.calibration import AnyNumberCalibration, ClassCalibration
from models.evaluation.calibration import LabelledMixture as Labelled
from models.evaluation.class_scores import threshold_curve
from models.evaluation.weighting import Weights
from models.features.rows import Rows, evenly_spread
from models.prediction.number_mixture import NumberMixture
from models.prediction.predictive import CategoricalMixture
from models.prediction.threads import threads_for
from models.tabular.model import TabularModel

MOST_NUMBERS = 300  # rows of a scatter plot: more hide each other
MOST_LABELLED = 10_000  # rows that thresholds are counted on, evenly spread
MOST_CLASSES = 20  # with curves, as the confusion table shows
MOST_POINTS = 100  # thresholds of a class
LEVEL = 0.9  # of the intervals
_DIGITS = 6


def describe(model: TabularModel, held_out: Rows, samples: int) -> Json:
    """What charts show of rows that no weight was fitted to."""
    most = MOST_NUMBERS if model.classes is None else MOST_LABELLED
    few = evenly_spread(len(held_out), most).to(held_out.inputs.device)
    fitted, rows, calibration = model.fitted(0.0), held_out[few], model.calibration_of(0.0)
    with torch.inference_mode(), threads_for(fitted.operations * len(rows) * samples):
        seed = model.default_seed
        parts = model.engine.labelled(fitted, rows, model.samplers[0], seed, samples)
        if model.classes is None:
            assert not isinstance(calibration, ClassCalibration)
            return describe_numbers(parts, calibration)
        assert calibration is None or isinstance(calibration, ClassCalibration)
        return describe_classes(parts, calibration, model.classes)


def describe_numbers(parts: Iterable[Labelled], calibration: AnyNumberCalibration | None) -> Json:
    """Actual values, predicted means and ends of the central 90 % intervals, in the row order."""
    columns = []
    for part in parts:
        assert isinstance(part.mixture, NumberMixture)
        mixture = part.mixture if calibration is None else calibration.apply(part.mixture)
        ends = mixture.quantiles([0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
        columns.append([v.double().cpu().numpy() for v in (part.targets, mixture.mean(), *ends)])
    actual, mean, lower, upper = (np.concatenate(one) for one in zip(*columns, strict=True))
    finite = np.isfinite(np.stack([actual, mean, lower, upper])).all(0)
    named = {"actual": actual, "mean": mean, "lower": lower, "upper": upper}
    return {"level": LEVEL} | {name: _rounded(values[finite]) for name, values in named.items()}


def describe_classes(
    parts: Iterable[Labelled], calibration: ClassCalibration | None, classes: Sequence[object]
) -> Json:
    """By class: recall, precision and false positive rate of the rows whose probability of the
    class is at least the threshold; the most frequent classes first. Classes without rows, and one
    that all rows have, are left out."""
    found, each, known = [], [], []
    for part in parts:
        assert isinstance(part.mixture, CategoricalMixture)
        mixture = part.mixture if calibration is None else calibration.apply(part.mixture)
        found.append(mixture.mean().cpu())
        each.append(part.targets.cpu())
        known += [] if part.weights is None else [part.weights.cpu()]
    probabilities, targets = torch.cat(found), torch.cat(each)
    weights = torch.cat(known) if known else None
    counts = torch.bincount(targets, minlength=len(classes)).tolist()
    some = [k for k in range(len(classes)) if 0 < counts[k] < len(targets)]
    order = sorted(some, key=lambda k: (-counts[k], k))
    curves = [
        {"label": classes[k], **_curve_of(probabilities[:, k], targets == k, weights)}
        for k in order[:MOST_CLASSES]
    ]
    return {"rows": len(targets), "curves": curves}


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
