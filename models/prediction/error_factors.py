"""The factors on the Monte-Carlo error of a variant, and the samples for a wanted accuracy.

One request estimates its own error (`standard_error`). Of evenly spread samples the estimate is too
large where the sequence also integrates interactions; by how much is measured once per variant, by
repetition with other seeds on held-out rows, for each output: a sequence integrates means better
than variances, and quantiles that are whole numbers jump.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from models.prediction.declared_outputs import Part
from models.prediction.outputs.questions import outputs
from models.prediction.sampler_measurement.errors import TOTALS
from models.prediction.summary import Summary

# Numbers at which the ratio is measured: the default, smaller ones and a larger one that are no
# powers of two either, for which the sequence is better. Between them it is interpolated.
SAMPLES = (10, 30, 100, 300)
ROWS = 24
_REPETITIONS = 16  # pooled over rows they give an output's ratio to a few per cent
_PILOT = 64  # samples of the first run
_MARGIN = 1.1  # factor on the number of samples that the first run suggests
_ROUNDING = 1e-6  # errors below this share of an output's spread over the rows may be rounding

LEVEL = 0.9  # of the interval whose bounds the ratio is measured for

Factors = Mapping[int, float]
OutputFactors = Mapping[str, Factors]
Summarise = Callable[[Sequence[int], int], list[Summary]]  # of (seeds, samples)


def measure_factors(
    summarise: Summarise, members: int = 1
) -> tuple[dict[int, float], dict[str, dict[int, float]]]:
    """Ratio of the outputs' standard deviations over seeds to the stated errors.

    Numbers of samples below two per member are left out: then seeds do not show the whole error.

    Args:
        summarise: returns every output with its error, for each seed.

    Returns:
        The root mean square over the outputs that vary in every row, for outputs that were not
        measured, and the ratio of each output.
    """
    common, each = dict[int, float](), dict[str, dict[int, float]]()
    for samples in SAMPLES:
        if members > 1 and samples < 2 * members:
            continue
        runs, smooth = summarise(range(_REPETITIONS), samples), []
        for name in runs[0].errors:
            actual, stated = _variances(name, runs)
            varies = (actual > 0) & (stated > 0)
            if varies.all():
                ratio = float((actual / stated).mean())
                smooth.append(ratio)
            else:  # of rows whose whole number jumps rarely, only sums over the rows tell
                ratio = float(actual.sum() / stated.sum()) if varies.any() else 1.0
            each.setdefault(name, {})[samples] = math.sqrt(ratio)
        common[samples] = math.sqrt(float(np.mean(smooth))) if smooth else 1.0
    return common, each


def _variances(name: str, runs: Sequence[Summary]) -> tuple[np.ndarray, np.ndarray]:
    """The actual and the stated variance of an output per row (and level or class)."""
    parts = TOTALS.get(name, (name,))
    values = np.stack([sum(run[part] for part in parts) for run in runs])
    actual = values.var(0, ddof=1)
    actual[actual <= (_ROUNDING * np.abs(values).max()) ** 2] = 0.0
    return actual, np.square(np.stack([run.errors[name] for run in runs])).mean(0)


def factor_at(factors: Factors, samples: int) -> float:
    """The ratio, interpolated in log(samples); 1 for one sample or without measurements."""
    if samples in factors:
        return factors[samples]
    known = [1, *sorted(factors)]
    ratios = [1.0, *(factors[count] for count in sorted(factors))]
    return float(np.interp(math.log(samples), np.log(known), ratios))


def _names(unit: str) -> set[str]:
    """The names of outputs with this unit, of rows and of parts."""
    each = (one.outputs if isinstance(one, Part) else (one,) for one in outputs())
    return {output.name for some in each for output in some if output.unit == unit}


_BOUNDED = _names("target") | _names("probability")
"""Outputs whose errors `target_mc_error` bounds."""
_QUANTILES = _names("target") - {"mean", "deviation"}


def worst_error(summary: Summary) -> float:
    """The largest error of the outputs in the target's unit, and of the probabilities, of all rows.

    Without an estimate it is infinite. Unbounded intervals, whose error is NaN, do not count, nor
    do quantiles of whole numbers: with any number of samples some row's jumps from one to the next.
    """
    each = [summary, *(part for part in summary.parts.values() if len(part.errors) > 1)]
    bounded = _BOUNDED - _QUANTILES if summary.get("closed") else _BOUNDED
    errors = [v for one in each for name, v in one.errors.items() if name in bounded]
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
