"""The scores to expect on rows without labels, with an interval, beside what training promised."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Len
from jaxtyping import Float
from torch import Tensor

from models.config.ranges import Count, NotNegative, Number
from models.evaluation.detector import Detector
from models.evaluation.exact_tests import ALARM_RATE, bernoulli_divergence
from models.expected_scores.simulation import WORLDS, HeldOut, Simulated

# The prior of the slope is N(1, ½²), as that of log c in `models.evaluation.calibration`: without
# rows that say more, a change that predictions expect is true within a factor of ½ to 1½.
SLOPE_SCALE = 0.5
ERRORS = ("squared_error", "mae")  # positive: changes are factors

_MOST_SCORES = 50


@dataclass(frozen=True)
class PromisedScore:
    """A score of the held-out rows.

    Args:
        measured: with their labels.
        worlds: with the simulated labels of each world.
        dispersion: variance of a row's score about its simulated mean ÷ its simulated variance, at
            least 1: above it predictions are surer of the score than they may be.
        slope: how much the score changes from row to row where predictions expect a change of 1,
            with its standard error; of errors the changes are relative ones.
    """

    measured: Number
    worlds: Annotated[tuple[Number, ...], Len(1, WORLDS)]
    dispersion: NotNegative = 1.0
    slope: Number = 1.0
    slope_error: NotNegative = SLOPE_SCALE


@dataclass(frozen=True)
class Promise:
    """What a variant's held-out rows let expect of new rows like them.

    Args:
        rows: number of held-out rows.
        scores: by name.
        loss: mean of the loss that predictions expect (`models.expected_scores.simulation`).
        loss_error: its standard error.
    """

    rows: Count
    scores: Annotated[dict[str, PromisedScore], Len(0, _MOST_SCORES)]
    loss: Number
    loss_error: NotNegative

    @classmethod
    def of(cls, parts: Sequence[HeldOut]) -> "Promise":
        """From held-out rows, all of which have labels."""
        sums = Simulated.joined([part.sums for part in parts])
        weights = torch.cat([part.weights for part in parts])
        scores = {}
        for name, total in sums.worlds.items():
            rows = torch.cat([part.moments[name] for part in parts], 1)
            if bool(total.isfinite().all()) and bool(rows[0].isfinite().all()):
                scores[name] = _promised(name, rows, weights, total / sums.weight)
        loss = sums.loss / sums.weight
        spread = max(sums.loss_squares / sums.weight - loss**2, 0.0)
        return cls(sums.rows, scores, loss, math.sqrt(spread / max(sums.rows - 1, 1)))


def _promised(
    name: str,
    rows: Float[Tensor, "3 rows"],
    weights: Float[Tensor, "rows"],
    worlds: Float[Tensor, "worlds"],
) -> PromisedScore:
    """The promise of a score by the moments of its rows (`HeldOut`)."""
    (actual, mean, variance), each = rows, weights / weights.sum()
    measured, expected = float(each @ actual), float(each @ mean)
    scale = measured / expected if name in ERRORS and min(measured, expected) > 0 else 1.0
    slope, error = _slope(rows, each, len(worlds), scale)
    surprise = actual - mean
    spread = float(each @ (surprise - each @ surprise).square())
    right = float(each @ variance) * (1 + 1 / len(worlds))  # if the predictions were right
    is_known = right > 0 and math.isfinite(spread / right)
    return PromisedScore(
        measured=measured,
        worlds=tuple(float(f"{world:.9g}") for world in worlds.tolist()),
        dispersion=max(1.0, spread / right) if is_known else 1.0,
        slope=slope,
        slope_error=error,
    )


def _slope(
    rows: Float[Tensor, "3 rows"], each: Float[Tensor, "rows"], worlds: int, scale: float
) -> tuple[float, float]:
    """The slope of actual on expected scores, and its standard error, given the prior.

    Least squares, with the error of rows of unlike variances (White 1980). Simulated means are not
    exact: what that adds to their spread is taken away, or the slope would be too flat.

    Args:
        scale: of the actual scores ÷ that of the expected ones.
    """
    actual, mean, variance = rows
    apart = mean - each @ mean
    spread = float(each @ apart.square() - each @ variance / worlds)
    if spread <= 0:
        return 1.0, SLOPE_SCALE
    actual = (actual - each @ actual) / scale
    slope = float(each @ (apart * actual)) / spread
    residual = actual - slope * apart
    error = math.sqrt(float((each * apart * residual).square().sum())) / spread
    if not (math.isfinite(slope) and 0 < error < math.inf):
        return 1.0, SLOPE_SCALE
    precision = SLOPE_SCALE**-2 + error**-2
    return (SLOPE_SCALE**-2 + slope * error**-2) / precision, precision**-0.5


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
    expected = {}
    for name, totals in simulated.worlds.items():
        promised = None if promise is None else promise.scores.get(name)
        actual = simulated.actual.get(name)
        mean = None if not simulated.labelled or actual is None else actual / simulated.labelled
        public = "rmse" if name == "squared_error" else name
        expected[public] = _one(name, totals / simulated.weight, promised, level, mean)
    return expected


def _one(
    name: str,
    worlds: Float[Tensor, "worlds"],
    promised: PromisedScore | None,
    level: float,
    actual: float | None,
) -> Expectation:
    start, changes, is_factor = _changes(name, worlds, promised)
    middle, half = _interval(changes, promised, level)
    ends = (start + middle, start + middle - half, start + middle + half)
    expected, lower, upper = (
        _as_score(name, math.exp(min(end, _LARGEST)) if is_factor else end) for end in ends
    )
    before = None if promised is None else _as_score(name, promised.measured)
    is_lowest = best(name) == "lowest"
    leaves = before is not None and (lower > before if is_lowest else upper < before)
    after = None if actual is None else _as_score(name, actual)
    return Expectation(expected, lower, upper, before, leaves, after)


def _changes(
    name: str, worlds: Float[Tensor, "worlds"], promised: PromisedScore | None
) -> tuple[float, Float[Tensor, "worlds"], bool]:
    """A score, its change from there in each world, and whether both are logarithms.

    From the measured score of the held-out rows; without one from 0, or from a factor of 1.
    """
    is_error = name in ERRORS and bool((worlds > 0).all())
    if promised is None:
        return 0.0, worlds.log() if is_error else worlds, is_error
    before, measured = worlds.new_tensor(promised.worlds), promised.measured
    if is_error and measured > 0 and bool((before > 0).all()):
        return math.log(measured), worlds.log() - before.log(), True
    return measured, worlds - before, False


def _interval(
    changes: Float[Tensor, "worlds"], promised: PromisedScore | None, level: float
) -> tuple[float, float]:
    """The middle of the interval of the change, and half its width."""
    from scipy import special  # noqa: PLC0415 - what loads models does without

    count, mean = len(changes), float(changes.mean())
    if count < 2:
        return mean, math.inf
    variance = float(changes.var()) * (1 + 1 / count)
    slope = 1.0
    if promised is not None:
        slope = promised.slope
        variance = promised.dispersion * variance + (promised.slope_error * mean) ** 2
    half = float(special.stdtrit(count - 1, 0.5 + 0.5 * level)) * math.sqrt(variance)
    return slope * mean, half


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
    bound = detector.highest_rate()
    evidence = rows * bernoulli_divergence(share, bound)
    is_more = share > max(FAR_ABOVE * promised, bound) and evidence > -math.log(ALARM_RATE)
    return Unlike(share, promised, is_more)
