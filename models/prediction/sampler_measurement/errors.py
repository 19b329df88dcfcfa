"""Errors of a summary against a truth, and the errors that independent samples would have.

Numbers: means and quantiles in predictive standard deviations, variances in predictive variances.
Classes: probabilities, their variances, and entropies in nats, as they are: most rows have classes
whose standard deviation is next to 0.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from models.prediction.declared_outputs import (
    CLASSIFICATION,
    ENTROPIES,
    LEVEL,
    REGRESSION,
    by_error_name,
    first_by_name,
)
from models.prediction.monte_carlo_error import VARIANCES
from models.prediction.outputs.questions import outputs
from models.prediction.summary import Summary

Arrays = Mapping[str, np.ndarray]

INDEPENDENT = 100  # samples: what an answer without `samples` had before, and its promise
SAMPLES_OF_RUN = 1_000  # so that a run fits the memory
LEVELS = (0.5, 0.9)  # intervals whose bounds are compared: the quantiles 0.05, 0.25, 0.75, 0.95
HIGH = 0.95  # the share of rows for a high quantile of the errors
_NORMAL_HIGH = 1.96  # of |z|, z ~ N(0, 1), at HIGH
_ROUNDING = 1e-6  # errors below this are rounding: nothing was uncertain

NUMBERS = ("mean", "median", "lower", "upper", "aleatoric_variance", "epistemic_variance")
CLASSES = ("mean", "aleatoric_variance", "epistemic_variance", *ENTROPIES[1:])
TOTALS = {
    "total_variance": ("aleatoric_variance", "epistemic_variance"),
    ENTROPIES[0]: ENTROPIES[1:],
}


@dataclass(frozen=True)
class Truth:
    """Outputs by name as exact as many samples tell them, [rows, …], with their scales.

    `promised` are the errors of `INDEPENDENT` independent samples, by output.
    """

    values: Arrays
    scales: Arrays
    promised: Mapping[str, "Spread"]

    def errors(self, summaries: Iterable[Summary]) -> Arrays:
        """Signed errors by output in the output's scale, [seeds, rows, …]."""
        found = [outputs_of(summary)[0] for summary in summaries]
        return {
            name: (np.stack([one[name] for one in found]) - true) / self.scales[name]
            for name, true in self.values.items()
        }


@dataclass(frozen=True)
class Spread:
    """The root mean square of errors over rows, and the quantile `HIGH` of their size."""

    rms: float
    high: float

    @classmethod
    def of(cls, errors: np.ndarray) -> "Spread":
        """Of errors over rows and seeds."""
        return cls(math.sqrt(np.square(errors).mean()), float(np.quantile(np.abs(errors), HIGH)))

    @classmethod
    def of_normals(cls, deviations: np.ndarray) -> "Spread":
        """Expected of independent normals with these standard deviations."""
        sizes = np.array([NormalDist().inv_cdf(0.5 + p / 2) for p in (np.arange(64) + 0.5) / 64])
        high = np.quantile(np.outer(deviations.ravel(), sizes), HIGH)
        return cls(math.sqrt(np.square(deviations).mean()), float(high))

    @property
    def bound(self) -> float:
        """A standard error of which 1.96 contain the errors of 95 % of the rows."""
        return max(self.rms, self.high / _NORMAL_HIGH)

    def or_more(self, other: "Spread") -> "Spread":
        """The larger of each."""
        return Spread(max(self.rms, other.rms), max(self.high, other.high))

    def within(self, limit: "Spread", factor: float = 1.0) -> bool:
        """Whether both are at most the factor times the limit's, but for rounding."""
        pairs = ((self.rms, limit.rms), (self.high, limit.high))
        return all(own <= factor * other + _ROUNDING for own, other in pairs)

    def ratio(self, limit: "Spread") -> float:
        """Of the root mean squares; 0 if this is rounding."""
        return 0.0 if self.rms <= _ROUNDING else self.rms / max(limit.rms, _ROUNDING)


def truth_of(runs: Sequence[Summary], shown: Sequence[Summary]) -> Truth:
    """The truth that runs of `SAMPLES_OF_RUN` independent samples tell together.

    What is promised is the larger of two estimates of the errors of `INDEPENDENT` samples: what the
    outputs' influence functions tell, and what other samples show. The former knows nothing of
    quantiles that are whole numbers or atoms, the latter is of a few seeds.

    Args:
        runs: summaries, some of them with every output's error.
        shown: summaries of `INDEPENDENT` independent samples with other seeds.
    """
    each = [outputs_of(run)[0] for run in runs]
    known = [stated for run in runs if (stated := outputs_of(run)[1])]
    # The median over the runs: a quantile of whole numbers is one of them.
    values = {name: _middle(name, [one[name] for one in each]) for name in each[0]}
    between = np.var([run["mean"] for run in runs], axis=0)
    for name in ("epistemic_variance", "total_variance"):
        values[name] += between
    alone = Truth(values, _scales(values), {})
    errors = alone.errors(shown)
    factor = math.sqrt(SAMPLES_OF_RUN / INDEPENDENT)
    promised = {}
    for name, scale in alone.scales.items():
        stated = np.mean([errors[name] for errors in known], axis=0)
        promised[name] = Spread.of_normals(factor * stated / scale).or_more(Spread.of(errors[name]))
    return replace(alone, promised=promised)


def _middle(name: str, runs: Sequence[np.ndarray]) -> np.ndarray:
    is_mean = name in {"mean", "probabilities"} or power_of(name) != 1
    return np.mean(runs, axis=0) if is_mean else np.median(runs, axis=0)


def outputs_of(summary: Summary) -> tuple[Arrays, Arrays]:
    """The compared outputs that a summary has, and their stated errors, by the errors' names."""
    values = {k: summary[k] for k in (NUMBERS if "median" in summary.values else CLASSES)}
    for name, (a, b) in TOTALS.items():
        if a in values and b in values:
            values[name] = values[a] + values[b]
    errors = {k: summary.errors[k] for k in values if len(summary.errors) > 1}
    return _by_name(values, summary, LEVELS), _by_name(errors, summary, LEVELS)


def _by_name(values: Arrays, of: Summary, levels: Sequence[float]) -> Arrays:
    return by_error_name(values, outputs(), _task(of), {LEVEL: levels})


def _task(summary: Summary) -> str:
    return REGRESSION if "median" in summary.values else CLASSIFICATION


def power_of(name: str) -> int:
    """The power of the predictive standard deviation that an output is in; 0 of entropies."""
    return 0 if name in ENTROPIES else 2 if name in VARIANCES else 1


def total_deviation(summary: Summary) -> np.ndarray:
    """The predictive standard deviation per row (and class)."""
    return np.sqrt(summary["aleatoric_variance"] + summary["epistemic_variance"])


def _scales(values: Arrays) -> Arrays:
    if "median" not in values:
        return {name: np.ones(()) for name in values}
    deviation = np.sqrt(np.maximum(values["total_variance"], np.finfo(float).tiny))
    return {name: deviation ** power_of(name) for name in values}


def with_bias(summary: Summary, bias: Mapping[str, float], levels: Sequence[float]) -> Summary:
    """The summary whose errors are √(noise² + bias²); one of the mean alone if nothing was drawn.

    Args:
        bias: as `models.prediction.sampler_measurement.record.MeasuredSampler`.
        levels: of the intervals.
    """
    if not bias:
        return summary
    deviation, declared = total_deviation(summary), first_by_name(outputs(), _task(summary))
    errors = {"mean": np.zeros_like(summary["mean"]), **summary.errors}

    def moved(name: str, error: np.ndarray) -> np.ndarray:
        if name not in bias:
            return error
        power = power_of(name)  # entropies are one for all classes
        return np.hypot(error, bias[name] * deviation**power if power else bias[name])

    for name, error in errors.items():
        output = declared[name]
        if output.along is LEVEL:
            names = [f"{output.error}_{LEVEL.text(level)}" for level in levels]
            each = zip(names, error.T, strict=True)
            errors[name] = np.stack([moved(*one) for one in each], axis=-1) if names else error
        else:
            errors[name] = moved(output.error, error)
    return replace(summary, errors=errors)
