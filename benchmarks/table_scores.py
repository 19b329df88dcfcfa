"""Scores of predictions for test rows, which need quantiles or probabilities alone.

The same for every method: CRPS as twice the mean pinball loss at eleven levels, so that a method
without a density has one; coverage of the 90 % interval, also where the median is low, middle and
high; the share of 90 % intervals that begin below what is possible.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of central intervals, between whose ends quantiles lie
PROBABILITIES = np.array(
    [*((1 - level) / 2 for level in reversed(LEVELS)), 0.5, *((1 + level) / 2 for level in LEVELS)]
)
MIDDLE = len(LEVELS)
BINS = 15  # of equal width, for the calibration error
LEAST = 1e-9  # a probability of 0 would cost infinitely much


def number_scores(
    truth: np.ndarray, quantiles: np.ndarray, mean: np.ndarray, ends: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Scores of quantiles [rows, levels] at `PROBABILITIES`, and of the 90 % interval's ends.

    `impossible` compares with the least true value, where that is 0 or more.
    """
    error = truth[:, None] - quantiles
    pinball = np.maximum(PROBABILITIES * error, (PROBABILITIES - 1) * error)
    lower, upper = ends
    covered = (lower <= truth) & (truth <= upper)
    by_median = np.argsort(quantiles[:, MIDDLE], kind="stable")
    least = truth.min()
    return {
        "crps": float(2 * pinball.mean()),
        "rmse": float(np.sqrt(np.mean((mean - truth) ** 2))),
        "cover90": float(covered.mean()),
        "thirds": [round(float(covered[part].mean()), 3) for part in np.array_split(by_median, 3)],
        "width90": float(np.mean(upper - lower)),
        "impossible": float(np.mean(lower < least - 1e-9)) if least >= 0 else 0.0,
    }


def class_scores(
    truth: Sequence[Any] | np.ndarray, probabilities: np.ndarray, classes: Sequence[Any]
) -> dict[str, Any]:
    """Scores of probabilities [rows, classes].

    Raises:
        ValueError: a true class is not among the classes.
    """
    place = {name: i for i, name in enumerate(classes)}
    if unknown := sorted({str(name) for name in truth if name not in place}):
        raise ValueError(f"the classes {unknown[:5]} are unknown; known are {list(classes)[:20]}")
    index = np.array([place[name] for name in truth])
    positive = probabilities.clip(LEAST, 1)
    positive = positive / positive.sum(axis=1, keepdims=True)
    confidence, right = positive.max(axis=1), positive.argmax(axis=1) == index
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - confidence, minlength=BINS)
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(-np.log(positive[np.arange(len(index)), index]).mean()),
        "ece": float(np.abs(gaps).sum() / len(index)),
    }
