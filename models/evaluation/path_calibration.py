"""Calibration of forecasts: a variance scale for each step ahead, and conformal intervals.

The scale of step h is c_h = exp(a + b g_h) with g_h = log h ÷ log H, from 0 to 1 over the horizon:
the errors of a network that feeds on its own values grow faster or slower than it predicts.

The errors of a forecast's steps are correlated, and forecasts from neighbouring origins overlap. n
is the number of independent errors that tell as much about a variance as all of these do, if they
add up like those of a random walk. The errors count as n rows in the fit of the scales, and in the
rank of a conformal interval, which is taken among the residuals of all steps (pooled groups: Dunn,
Wasserman and Ramdas 2022, arXiv 1809.07441).

Sums over the steps have residuals of their own, because a sum is as uncertain as its steps go
together (`models.forecasting.coupling`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Interval, Len
from jaxtyping import Float64, Int
from torch import Tensor

from models.config import Json
from models.config.ranges import Count, NotNegative, Number, Positive
from models.evaluation.adaptive import Reference
from models.evaluation.calibration import PENALTY_SCALE
from models.evaluation.conformal_rank import MAX_RESIDUALS, conformal_rank, order_statistics

# Fewer independent errors have no conformal interval of 90 %, and a scale's prior, which weighs as
# much as eight, would say more than they do.
MIN_INDEPENDENT = 9
_ROUNDS, _HALVINGS = 50, 30  # of Newton's method, which needs five to ten


@dataclass(frozen=True)
class SumCalibration:
    """The dependence of the steps of paths, and the residuals of sums from the first step on.

    Args:
        theta: moves the dependence of the paths (`models.forecasting.coupling`).
        residuals: |S − median| ÷ deviation in increasing order, as those of a step, of the sums S
            over the first 1, 2, … steps, or of their logarithms, if logarithms are forecast.
        independent: the number of independent errors that tell as much.
    """

    theta: Annotated[float, Interval(ge=-1, le=1)]
    residuals: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    independent: Positive

    def half_width(self, level: float) -> float:
        """Half the width of a conformal interval of a sum, in deviations; infinite as of a step."""
        return _half_width(self.residuals, self.independent, level)


@dataclass(frozen=True)
class PathCalibration:
    """Factors on the variances of paths, and the residuals of forecasts that were calibrated.

    Args:
        scale: c_1, of the first step.
        growth: log c_H − log c_1.
        horizon: H.
        residuals: |u − median| ÷ calibrated deviation in increasing order, of all origins and
            steps. u is the logarithm, if one is forecast. The deviation is half the distance of the
            quantiles that are 1 deviation from a Gaussian's mean.
        origins: number of forecasts that calibrated.
        independent: n, the number of independent errors that tell as much as theirs.
        sums: of sums over the steps; None for versions of earlier releases.
    """

    scale: Positive
    growth: Number
    horizon: Count
    residuals: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    origins: Count
    independent: Positive
    sums: SumCalibration | None = None
    has_intervals: ClassVar[bool] = True

    def factors(self, steps: int) -> Float64[Tensor, "steps"]:
        """c_h of so many steps; those beyond the horizon have that of the horizon."""
        return torch.exp(math.log(self.scale) + self.growth * progress(steps, self.horizon))

    def ranked(self, residuals: Float64[Tensor, "origins steps"]) -> "PathCalibration":
        """A copy with the residuals of the calibrated forecasts."""
        return replace(self, residuals=order_statistics(residuals.flatten())[0])

    def half_width(self, level: float) -> float:
        """Half the width of a conformal interval, in deviations; infinite if errors are too few.

        It would contain a step of a new forecast with a probability of `level` or more, if that
        forecast were exchangeable with those that calibrated. Later ones are not, if the series
        changes.
        """
        return _half_width(self.residuals, self.independent, level)

    def reference(self) -> Reference:
        """The residuals, which together count as the independent ones, and labelled steps join."""
        residuals = np.asarray(self.residuals, dtype=float)
        each = min(1.0, self.independent / max(1, len(residuals)))
        return Reference(residuals, np.full(len(residuals), each))

    def describe(self) -> Json:
        return {
            "variance_scale": self.scale,
            "variance_scale_last_step": self.scale * math.exp(self.growth),
            "origins": self.origins,
            "independent_errors": self.independent,
            "rows": self.origins * self.horizon,
            **({} if self.sums is None else {"dependence_of_steps": self.sums.theta}),
        }


def _half_width(residuals: Sequence[float], independent: float, level: float) -> float:
    """The residual whose rank among as many as are independent is the conformal one."""
    count = int(independent)
    rank = conformal_rank(count, level)
    if rank > count:
        return math.inf
    return residuals[math.ceil(rank * len(residuals) / count) - 1]


def progress(steps: int, horizon: int) -> Float64[Tensor, "steps"]:
    """g_h = log h ÷ log H, at most 1; 0 if the horizon is one step."""
    if horizon == 1:
        return torch.zeros(steps, dtype=torch.float64)
    h = torch.arange(1, steps + 1, dtype=torch.float64)
    return (h.log() / math.log(horizon)).clamp(max=1)


def independent_errors(
    series: Int[np.ndarray, "origins"], firsts: Int[np.ndarray, "origins"], horizon: int
) -> float:
    """n: the number of independent Gaussian errors whose variance is known as well.

    The variance of a mean of N squared errors with correlations ρ is 2 Σ ρ² ÷ N², and that of n
    independent ones is 2 ÷ n.

    Args:
        series: which series each forecast is of; errors of different ones are independent.
        firsts: its first step.
    """
    return _worth(series, firsts, horizon, 2)


def independent_means(
    series: Int[np.ndarray, "origins"], firsts: Int[np.ndarray, "origins"], horizon: int
) -> float:
    """The number of independent errors whose mean is known as well: N² ÷ Σ ρ.

    The arguments are those of `independent_errors`.
    """
    return _worth(series, firsts, horizon, 1)


def _worth(
    series: Int[np.ndarray, "origins"],
    firsts: Int[np.ndarray, "origins"],
    horizon: int,
    power: int,
) -> float:
    """N² ÷ Σ ρ^power over all pairs of errors."""
    lags, counts = overlaps(series, firsts, horizon)
    each = [(step_correlations(lag, horizon) ** power).sum() for lag in lags.tolist()]
    return float((len(firsts) * horizon) ** 2 / np.dot(counts, each))


def overlaps(
    series: Int[np.ndarray, "origins"], firsts: Int[np.ndarray, "origins"], horizon: int
) -> tuple[Int[np.ndarray, "lags"], Int[np.ndarray, "lags"]]:
    """How many steps apart overlapping forecasts of a series begin, and how many pairs do so."""
    same = np.equal.outer(series, series)
    apart = np.abs(np.subtract.outer(firsts, firsts))[same]
    lags, counts = np.unique(apart[apart < horizon], return_counts=True)
    return lags, counts


def step_correlations(lag: int, horizon: int) -> Float64[np.ndarray, "first second"]:
    """ρ of the errors of two forecasts of which the second begins `lag` steps later.

    Errors of a random walk after h and k steps that share m of them have ρ = m ÷ √(h k).
    """
    steps = np.arange(1, horizon + 1)
    shared = np.minimum.outer(steps - lag, steps).clip(0)
    return np.asarray(shared / np.sqrt(np.multiply.outer(steps, steps)), float)


def independent_sums(
    series: Int[np.ndarray, "origins"], firsts: Int[np.ndarray, "origins"], horizon: int
) -> float:
    """n for the sums over the first 1, 2, … steps of each forecast, as `independent_errors`.

    If errors are those of a random walk, the sum over h steps has the h-th shock before its end h
    times, and the last one once.
    """
    _, number = np.unique(series, return_inverse=True)
    start = np.repeat(firsts - firsts.min(), horizon)
    end = start + np.tile(np.arange(1, horizon + 1), len(firsts))
    time = np.arange(end.max())
    weights = (end[:, None] - time) * (time >= start[:, None])
    weights = weights.clip(0).astype(float)
    weights /= np.sqrt(np.square(weights).sum(1, keepdims=True))
    whose, total = np.repeat(number, horizon), 0.0
    for one in range(int(number.max()) + 1):
        part = weights[whose == one]
        total += float(np.square(part @ part.T).sum())
    return float(len(start) ** 2 / total)


def fit_scales(normal: Float64[Tensor, "origins steps"], independent: float) -> PathCalibration:
    """The most probable scales given errors ÷ predicted deviations, if errors are Gaussian.

    It minimises n · mean ½ (log c_h + z²_oh ÷ c_h) plus the penalties of a and b, whose prior is
    that of a table's scale. The sum is convex in (a, b).
    """
    origins, steps = normal.shape
    squares = normal.square().mean(0).numpy()  # of each step, over the origins
    design = np.stack([np.ones(steps), progress(steps, steps).numpy()], axis=1)
    precision = PENALTY_SCALE**-2

    def loss(at: np.ndarray) -> float:
        logs = design @ at
        fit = 0.5 * independent * float(np.mean(logs + squares * np.exp(-logs)))
        return fit + 0.5 * precision * float(at @ at)

    at = np.zeros(2)
    for _ in range(_ROUNDS):
        shrunk = squares * np.exp(-(design @ at))
        slope = 0.5 * independent / steps * design.T @ (1 - shrunk) + precision * at
        bend = 0.5 * independent / steps * design.T @ (shrunk[:, None] * design)
        step = np.linalg.solve(bend + precision * np.eye(2), slope)
        lengths = (0.5**k for k in range(_HALVINGS))
        length = next((one for one in lengths if loss(at - one * step) < loss(at)), 0.0)
        at = at - length * step
        if length * float(np.abs(step).max()) < 1e-9:
            break
    return PathCalibration(math.exp(at[0]), float(at[1]), steps, (), origins, independent)
