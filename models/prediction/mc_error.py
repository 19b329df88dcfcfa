"""The error of quasi-Monte-Carlo means, and the number of samples for a wanted accuracy.

The standard error of independent samples is several times the error of evenly spread ones. The
points of one sequence are no replicates, so one request cannot show its own error. The ratio of the
two errors is therefore measured once per variant, by repetition with other seeds on held-out rows.
It differs between rows by a third for a regression, by up to a factor of two for probabilities.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from models.prediction.prediction import Arrays

SAMPLES = (8, 32, 128)  # numbers at which the ratio is measured; between them it is interpolated
ROWS = 24
_REPETITIONS = 24  # pooled over the rows they give the ratio to about a tenth
_PILOT = 32  # samples of the first run
_MARGIN = 1.1  # factor on the number of samples that the first run suggests

Factors = Mapping[int, float]
Summarise = Callable[[int, int], Arrays]  # of (seed, samples)


def measure_factors(summarise: Summarise, members: int = 1) -> dict[int, float]:
    """Ratio of the mean's standard deviation over seeds to its naive standard error.

    Numbers of samples below two per member are left out: then seeds do not show the whole error.
    """
    known = [samples for samples in SAMPLES if members == 1 or samples >= 2 * members]
    return {samples: _measure(summarise, samples) for samples in known}


def _measure(summarise: Summarise, samples: int) -> float:
    """The ratio's root mean square over rows. The variances of a row's classes are added."""
    runs = [summarise(seed, samples) for seed in range(_REPETITIONS)]
    actual = _per_row(np.stack([run["mean"] for run in runs]).var(0, ddof=1))
    naive = _per_row(np.square(np.stack([run["mc_error"] for run in runs])).mean(0))
    varies = naive > 0  # nothing varies with one hidden layer: the mean is exact
    return math.sqrt((actual[varies] / naive[varies]).mean()) if varies.any() else 1.0


def _per_row(variances: np.ndarray) -> np.ndarray:
    return variances.reshape(len(variances), -1).sum(1)


def factor_at(factors: Factors, samples: int) -> float:
    """The ratio, interpolated in log(samples); 1 for one sample or without measurements."""
    known = [1, *sorted(factors)]
    ratios = [1.0, *(factors[count] for count in sorted(factors))]
    return float(np.interp(math.log(samples), np.log(known), ratios))


def until_accurate(
    predict: Callable[[int], Arrays], target: float, max_samples: int
) -> tuple[Arrays, int]:
    """Sample until every row's error is at most the target, or `max_samples` are drawn.

    Returns the summary and its number of samples. The error falls at least as 1/√samples, so a
    small first run shows how many are enough.
    """
    samples = min(_PILOT, max_samples)
    while True:
        summary = predict(samples)
        worst = float(summary["mc_error"].max()) if "mc_error" in summary else math.inf
        if worst <= target or samples == max_samples:
            return summary, samples
        needed = samples * _MARGIN * (worst / target) ** 2
        samples = max_samples if needed > max_samples else max(math.ceil(needed), samples + 1)
