"""Scores of predictions: the service's responses against held-out true values."""

from dataclasses import dataclass

import numpy as np

from credence.types import Interval, PredictionAnswer

RELIABILITY_BINS = 10


def rmse(prediction: PredictionAnswer, truth: np.ndarray) -> float:
    """Root mean squared error of the predicted means."""
    return float(np.sqrt(np.mean((np.asarray(prediction["mean"]) - truth) ** 2)))


def coverage(interval: Interval, truth: np.ndarray) -> float:
    """Fraction of the truths inside the interval."""
    inside = (np.asarray(interval["lower"]) <= truth) & (truth <= np.asarray(interval["upper"]))
    return float(inside.mean())


def error(prediction: PredictionAnswer, truth: np.ndarray) -> float:
    """Fraction of the rows whose label is wrong."""
    return float(np.mean(np.asarray(prediction["labels"], dtype=float) != truth))


def log_likelihood(prediction: PredictionAnswer, truth: np.ndarray) -> float:
    """Mean log probability of the true class, in nats."""
    classes = [float(name) for name in prediction["classes"]]
    places = np.searchsorted(classes, truth)
    probabilities = np.asarray(prediction["probabilities"])[np.arange(len(truth)), places]
    return float(np.log(np.maximum(probabilities, np.finfo(float).tiny)).mean())


@dataclass(frozen=True)
class Reliability:
    """Per bin of confidence: mean confidence, accuracy, and number of rows."""

    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray


def reliability(prediction: PredictionAnswer, truth: np.ndarray) -> Reliability:
    """Confidence against accuracy in bins of equal width, empty ones left out."""
    confidence = np.max(prediction["probabilities"], axis=1)
    right = np.asarray(prediction["labels"], dtype=float) == truth
    bins = np.minimum((confidence * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    count = np.bincount(bins, minlength=RELIABILITY_BINS)
    full = count > 0
    sums = [np.bincount(bins, values, RELIABILITY_BINS)[full] for values in (confidence, right)]
    return Reliability(sums[0] / count[full], sums[1] / count[full], count[full])
