"""The factors on the Monte-Carlo error of a variant, and the samples for a wanted accuracy.

One request estimates its own error (`standard_error`). Of evenly spread samples the estimate is too
large where the sequence also integrates interactions; by how much is measured once per variant, by
repetition with other seeds on held-out rows, for all outputs together.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from models.prediction.answers.questions import outputs
from models.prediction.outputs import Output
from models.prediction.summary import Summary

# Numbers at which the ratio is measured: the default, and smaller ones that are no powers of two
# either, for which the sequence is better. Between them it is interpolated.
SAMPLES = (10, 30, 100)
ROWS = 24
_REPETITIONS = 16  # pooled over rows and outputs they give the ratio to a few per cent
_PILOT = 64  # samples of the first run
_MARGIN = 1.1  # factor on the number of samples that the first run suggests
_ROUNDING = 1e-6  # errors below this share of an output's spread over the rows may be rounding

LEVEL = 0.9  # of the interval whose bounds the ratio is measured for
MEASURED = ("mean", "aleatoric_variance", "epistemic_variance", "median", "lower", "upper")

Factors = Mapping[int, float]
Summarise = Callable[[Sequence[int], int], list[Summary]]  # of (seeds, samples)


def measure_factors(summarise: Summarise, members: int = 1) -> dict[int, float]:
    """Ratio of the outputs' standard deviations over seeds to the stated errors.

    Numbers of samples below two per member are left out: then seeds do not show the whole error.

    Args:
        summarise: returns every output with its error, for each seed.
    """
    known = [samples for samples in SAMPLES if members == 1 or samples >= 2 * members]
    return {samples: _measure(summarise, samples) for samples in known}


def _measure(summarise: Summarise, samples: int) -> float:
    """The ratio's root mean square over rows and outputs."""
    runs = summarise(range(_REPETITIONS), samples)
    found = [_ratios(name, runs) for name in MEASURED if name in runs[0].errors]
    joined = np.concatenate([np.zeros(0), *found])
    return math.sqrt(joined.mean()) if joined.size else 1.0


def _ratios(name: str, runs: Sequence[Summary]) -> np.ndarray:
    """Actual ÷ stated variance per row (and class), where the output varies."""
    values = np.stack([run[name] for run in runs])
    actual = values.var(0, ddof=1)
    stated = np.square(np.stack([run.errors[name] for run in runs])).mean(0)
    varies = (actual > (_ROUNDING * np.abs(values).max()) ** 2) & (stated > 0)
    return actual[varies] / stated[varies]


def factor_at(factors: Factors, samples: int) -> float:
    """The ratio, interpolated in log(samples); 1 for one sample or without measurements."""
    if samples in factors:
        return factors[samples]
    known = [1, *sorted(factors)]
    ratios = [1.0, *(factors[count] for count in sorted(factors))]
    return float(np.interp(math.log(samples), np.log(known), ratios))


_OTHER_UNITS = {
    one.name
    for one in outputs()
    if isinstance(one, Output)
    and one.unit in ("target squared", "probability squared", "nats", "per target", "costs")
}
"""Outputs whose errors `target_mc_error` does not bound."""


def worst_error(summary: Summary) -> float:
    """The largest error of the outputs in the target's unit, and of the probabilities, of all rows.

    Without an estimate it is infinite. Unbounded intervals, whose error is NaN, do not count.
    """
    each = [summary, *(part for part in summary.parts.values() if len(part.errors) > 1)]
    errors = [v for one in each for name, v in one.errors.items() if name not in _OTHER_UNITS]
    if not errors:
        return math.inf
    return float(np.nanmax([np.nanmax(values) for values in errors]))


def until_accurate(
    predict: Callable[[int], Summary], target: float, max_samples: int
) -> tuple[Summary, int]:
    """Sample until `worst_error` is at most the target, or `max_samples` are drawn.

    Returns the summary and its number of samples. The error falls at least as 1/√samples, so a
    small first run shows how many are enough.
    """
    samples = min(_PILOT, max_samples)
    while True:
        summary = predict(samples)
        worst = worst_error(summary)
        if worst <= target or samples == max_samples:
            return summary, samples
        ratio = worst / target  # infinite rather than an error, where a power would overflow
        needed = samples * _MARGIN * ratio * ratio
        samples = max_samples if needed > max_samples else max(math.ceil(needed), samples + 1)
