"""How far a quasi-Monte-Carlo mean is off, and how many samples a wanted accuracy takes.

The spread of independent samples overstates the error of evenly spread ones, several times over,
and their order forbids the usual replicates within one request. So the ratio of the two is measured
once per variant, by repetition with other seeds on held-out rows. Between rows it differs by a
third for a regression and by up to a factor of two for probabilities.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from models.prediction.prediction import Arrays

SAMPLES = (8, 32, 128)  # where the ratio is measured; in between it is interpolated
ROWS = 24
_REPETITIONS = 24  # pooled over the rows: the ratio is known to about a tenth
_PILOT = 32
_MARGIN = 1.1

Factors = Mapping[int, float]
Summarise = Callable[[int, int], Arrays]  # of (seed, samples)


def measure_factors(summarise: Summarise) -> dict[int, float]:
    """Ratio of the mean's standard deviation over seeds to its naive standard error."""
    return {samples: _measure(summarise, samples) for samples in SAMPLES}


def _measure(summarise: Summarise, samples: int) -> float:
    """Root mean square over the rows; over the classes of a row their variances are summed."""
    runs = [summarise(seed, samples) for seed in range(_REPETITIONS)]
    actual = _per_row(np.stack([run["mean"] for run in runs]).var(0, ddof=1))
    naive = _per_row(np.square(np.stack([run["mc_error"] for run in runs])).mean(0))
    moved = naive > 0  # with one hidden layer nothing does
    return math.sqrt((actual[moved] / naive[moved]).mean()) if moved.any() else 1.0


def _per_row(variances: np.ndarray) -> np.ndarray:
    return variances.reshape(len(variances), -1).sum(1)


def factor_at(factors: Factors, samples: int) -> float:
    """Interpolated in the logarithm of the samples; 1 without measurements or with one sample."""
    known = [1, *sorted(factors)]
    ratios = [1.0, *(factors[count] for count in sorted(factors))]
    return float(np.interp(math.log(samples), np.log(known), ratios))


def until_accurate(
    predict: Callable[[int], Arrays], target: float, max_samples: int
) -> tuple[Arrays, int]:
    """Sample until every row's error is below the target, or `max_samples` are drawn.

    The error falls at least with the root of the samples, so a small run shows how many are enough.
    """
    samples = min(_PILOT, max_samples)
    while True:
        summary = predict(samples)
        worst = float(summary["mc_error"].max()) if "mc_error" in summary else math.inf
        if worst <= target or samples == max_samples:
            return summary, samples
        needed = samples * _MARGIN * (worst / target) ** 2
        samples = max_samples if needed > max_samples else max(math.ceil(needed), samples + 1)
