"""The scores to expect on rows without labels, with an interval, beside what training promised."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from models.evaluation.exact_tests import ALARM_RATE, bernoulli_divergence
from models.evaluation.out_of_distribution import Detector
from models.expected_scores.promise import ERRORS, Promise, PromisedScore
from models.expected_scores.simulation import Simulated

_LARGEST = 700.0  # whose exponential is a number
FAR_ABOVE = 5  # times the promised share of rows unlike those of training
SHARES = ("accuracy", "coverage", "conformal_coverage")  # between 0 and 1


@dataclass(frozen=True)
class Expectation:
    """What a score of these rows will be, if their labels become known.

    Args:
        lower, upper: contain it with the wanted probability, as far as the predictions are as
            calibrated on these rows as on the held-out ones.
        promised: the score of the held-out rows; None of a version that did not keep it.
        leaves: whether the promised score is better than all of the interval.
        actual: the score of the rows that have a label; None without any.
    """

    expected: float
    lower: float
    upper: float
    promised: float | None
    leaves: bool
    actual: float | None


def expect(simulated: Simulated, promise: Promise | None, level: float) -> dict[str, Expectation]:
    """The expected scores by their public names.

    In each world w the score of the new rows is T_w and that of the held-out rows H_w. Its change
    is d_w = T_w − H_w, of errors, which are positive, d_w = log T_w − log H_w. What is expected is
    m + β d̄, where m is the measured score of the held-out rows (its logarithm, of errors) and β
    the slope that they showed. An error that predictions make about both sets of rows cancels.

    The variance is φ Var(d_w)(1 + 1/W) + (s_β d̄)² with the dispersion φ, the number W of worlds
    and the standard error s_β of the slope. Var(d_w) is due to the labels of these rows, those of
    the held-out rows, and weights on which the two sets of rows do not depend alike. The interval
    is Student's.

    Args:
        level: probability of the interval.
    """
    found = {}
    for name, totals in simulated.worlds.items():
        promised = None if promise is None else promise.scores.get(name)
        actual = simulated.actual.get(name)
        mean = None if not simulated.labelled or actual is None else actual / simulated.labelled
        public = "rmse" if name == "squared_error" else name
        found[public] = _one(name, totals / simulated.weight, promised, level, mean)
    return found


def _one(
    name: str,
    worlds: Float[Tensor, "worlds"],
    promised: PromisedScore | None,
    level: float,
    actual: float | None,
) -> Expectation:
    changes = _changes(name, worlds, promised)
    middle, half = _interval(changes, promised, level)
    expected, lower, upper = (
        _as_score(name, changes.back(end)) for end in (middle, middle - half, middle + half)
    )
    before = None if promised is None else _as_score(name, promised.measured)
    is_lowest = best(name) == "lowest"
    leaves = before is not None and (lower > before if is_lowest else upper < before)
    after = None if actual is None else _as_score(name, actual)
    return Expectation(expected, lower, upper, before, leaves, after)


@dataclass(frozen=True)
class _Changes:
    """How the score changes in each world from `start`; both are logarithms if `is_factor`."""

    start: float
    by_world: Float[Tensor, "worlds"]
    is_factor: bool

    def back(self, value: float) -> float:
        return math.exp(min(value, _LARGEST)) if self.is_factor else value


def _changes(
    name: str, worlds: Float[Tensor, "worlds"], promised: PromisedScore | None
) -> _Changes:
    """From the measured score of the held-out rows; without one from 0, or from a factor of 1."""
    is_error = name in ERRORS and bool((worlds > 0).all())
    if promised is None:
        return _Changes(0.0, worlds.log() if is_error else worlds, is_error)
    before, measured = worlds.new_tensor(promised.worlds), promised.measured
    if is_error and measured > 0 and bool((before > 0).all()):
        return _Changes(math.log(measured), worlds.log() - before.log(), is_factor=True)
    return _Changes(measured, worlds - before, is_factor=False)


def _interval(
    changes: _Changes, promised: PromisedScore | None, level: float
) -> tuple[float, float]:
    """The middle of the interval, and half its width."""
    from scipy import special  # noqa: PLC0415 - what loads models does without

    values = changes.by_world
    count, mean = len(values), float(values.mean())
    if count < 2:
        return changes.start + mean, math.inf
    variance = float(values.var()) * (1 + 1 / count)
    if promised is None:
        slope = 1.0
    else:
        slope = promised.slope
        variance = promised.dispersion * variance + (promised.slope_error * mean) ** 2
    half = float(special.stdtrit(count - 1, 0.5 + 0.5 * level)) * math.sqrt(variance)
    return changes.start + slope * mean, half


def _as_score(name: str, value: float) -> float:
    """The public score: the root of a squared error, a share between 0 and 1."""
    if name == "squared_error":
        return math.sqrt(max(value, 0.0))
    if name == "mae":
        return max(value, 0.0)
    return min(max(value, 0.0), 1.0) if name.startswith(SHARES) else value


def best(name: str) -> Literal["highest", "lowest"]:
    """Which values of a score are better. Of coverage too little is worse than too much."""
    return "lowest" if name in (*ERRORS, "rmse", "brier") else "highest"


def leaving(found: Mapping[str, Expectation]) -> list[str]:
    """The names of the scores that leave what was promised."""
    return [name for name, one in found.items() if one.leaves]


@dataclass(frozen=True)
class Unlike:
    """The share of rows unlike those of training, and of rows like them that may be flagged.

    Args:
        leaves: whether the share is far above what was promised: five times the promised one, and
            more than chance allows.
    """

    share: float
    promised: float
    leaves: bool


def compare_unlike(flagged: int, rows: int, detector: Detector) -> Unlike:
    """The same criterion as that of the alert on served rows, `OutOfDistributionRising`."""
    share, promised = flagged / rows, detector.false_alarm_rate
    bound = detector.highest_rate(ALARM_RATE)
    evidence = rows * bernoulli_divergence(share, bound)
    is_more = share > max(FAR_ABOVE * promised, bound) and evidence > -math.log(ALARM_RATE)
    return Unlike(share, promised, is_more)
