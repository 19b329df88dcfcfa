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

from models.prediction.influence import ERROR
from models.prediction.prediction import Arrays

INDEPENDENT = 100  # samples: what an answer without `samples` had before, and its promise
SAMPLES_OF_RUN = 1_000  # so that a run fits the memory
LEVELS = (0.5, 0.9)  # intervals whose bounds are compared: the quantiles 0.05, 0.25, 0.75, 0.95
HIGH = 0.95  # the share of rows for a high quantile of the errors
_NORMAL_HIGH = 1.96  # of |z|, z ~ N(0, 1), at HIGH
_ROUNDING = 1e-6  # errors below this are rounding: nothing was uncertain

# An output's name in the errors of a summary, and its name among the values.
QUANTILES = {
    f"{end}_{level}": f"credible {end} {level}" for level in LEVELS for end in ("lower", "upper")
}
NUMBERS = {"mean": "mean", "median": "median", **QUANTILES}
VARIANCES = {"aleatoric_variance": "aleatoric", "epistemic_variance": "epistemic"}
ENTROPIES = {"expected_entropy": "expected_entropy", "mutual_information": "mutual_information"}
SUMS = {
    "total_variance": tuple(VARIANCES),
    "predictive_entropy": tuple(ENTROPIES),
}
CLASSES = {"probabilities": "mean", **VARIANCES, **ENTROPIES}

_VARIANCE_NAMES = (*VARIANCES, "total_variance")
_ENTROPY_NAMES = (*ENTROPIES, "predictive_entropy")


@dataclass(frozen=True)
class Truth:
    """Outputs by name as exact as many samples tell them, [rows, …], with their scales.

    `promised` are the errors of `INDEPENDENT` independent samples, by output.
    """

    values: Arrays
    scales: Arrays
    promised: Mapping[str, "Spread"]

    def errors(self, summaries: Iterable[Arrays]) -> Arrays:
        """Signed errors by output in the output's scale, [seeds, rows, …]."""
        found = [outputs_of(summary) for summary in summaries]
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


def truth_of(runs: Sequence[Arrays], shown: Sequence[Arrays]) -> Truth:
    """The truth that runs of `SAMPLES_OF_RUN` independent samples tell together.

    What is promised is the larger of two estimates of the errors of `INDEPENDENT` samples: what the
    outputs' influence functions tell, and what other samples show. The former knows nothing of
    quantiles that are whole numbers or atoms, the latter is of a few seeds.

    Args:
        runs: summaries, some of them with every output's error.
        shown: summaries of `INDEPENDENT` independent samples with other seeds.
    """
    each = [outputs_of(run) for run in runs]
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
        key = f"{ERROR}{name}"
        stated = np.mean([run[key] for run in runs if key in run], axis=0)
        promised[name] = Spread.of_normals(factor * stated / scale).or_more(Spread.of(errors[name]))
    return replace(alone, promised=promised)


def _middle(name: str, runs: Sequence[np.ndarray]) -> np.ndarray:
    quantile = name == "median" or name in QUANTILES
    return np.median(runs, axis=0) if quantile else np.mean(runs, axis=0)


def outputs_of(summary: Arrays) -> Arrays:
    """The compared outputs that a summary has, by name."""
    names = NUMBERS | VARIANCES if "median" in summary else CLASSES
    found = {name: summary[key] for name, key in names.items()}
    sums = {name: parts for name, parts in SUMS.items() if parts[0] in found}
    return found | {name: found[a] + found[b] for name, (a, b) in sums.items()}


def power_of(name: str) -> int:
    """The power of the predictive standard deviation that an output is in; 0 of entropies."""
    return 0 if name in _ENTROPY_NAMES else 2 if name in _VARIANCE_NAMES else 1


def total_deviation(summary: Arrays) -> np.ndarray:
    """The predictive standard deviation per row (and class)."""
    return np.sqrt(summary["aleatoric"] + summary["epistemic"])


def _scales(values: Arrays) -> Arrays:
    if "median" not in values:
        return {name: np.ones(()) for name in values}
    deviation = np.sqrt(np.maximum(values["total_variance"], np.finfo(float).tiny))
    return {name: deviation ** power_of(name) for name in values}


def with_bias(summary: Arrays, bias: Mapping[str, float]) -> Arrays:
    """The summary whose errors are √(noise² + bias²); one of the mean alone if nothing was drawn.

    Args:
        bias: as `models.prediction.cheapest.record.MeasuredSampler`.
    """
    deviation, found = total_deviation(summary), dict(summary)
    for name, share in bias.items():
        of_mean = ("mc_error",) if name in {"mean", "probabilities"} else ()
        for key in (*of_mean, f"{ERROR}{name}"):
            if key in summary or key == "mc_error":
                power = power_of(name)  # entropies are one for all classes
                error = share * deviation**power if power else share
                found[key] = np.hypot(summary.get(key, 0.0), error)
    return found
