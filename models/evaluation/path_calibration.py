"""Calibration of forecasts: a variance scale for each step ahead, and conformal intervals.

The scale of step h is c_h = exp(a + b g_h) with g_h = log h ÷ log H, from 0 to 1 over the horizon:
the errors of a network that feeds on its own values grow faster or slower than it predicts.

The errors of a forecast's steps are correlated, and forecasts from neighbouring origins overlap. n
is the number of independent errors that tell as much about a variance as all of these do
(`models.forecasting.worth`). The errors count as n rows in the fit of the scales, and in the
rank of a conformal interval. A step whose own errors are worth enough for a level is ranked among
them, other steps among the residuals of all (pooled groups: Dunn, Wasserman and Ramdas 2022, arXiv
1809.07441).

Sums over the steps have residuals of their own, because a sum is as uncertain as its steps go
together (`models.forecasting.totals.sums`).
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
from models.evaluation.conformal_rank import (
    MAX_RESIDUALS,
    Reference,
    conformal_rank,
    order_statistics,
)

_MAX = 1e300  # the largest number that an artifact holds
MIN_INDEPENDENT = 9  # fewer errors have no conformal interval of 90 %
# The prior of a and b is N(0, 0.2²), and weighs as much as 50 independent errors. Series have calm
# and wild years: how large the errors of one stretch are says little about the next one, however
# well it is known (docs/method.md, Forecasts).
SCALE_SPREAD = 0.2
# The probability below a Gaussian's mean + 1 deviation, and so the quantile that gives a deviation.
ONE_DEVIATION = 0.5 * (1 + math.erf(math.sqrt(0.5)))
_GRADIENT = 1e-9  # of the loss per independent error, where the fit of the scales ends

Numbers = Int[np.ndarray, "origins"]  # of series, or of the first steps of forecasts
PerStep = Float64[Tensor, "steps"]


@dataclass(frozen=True)
class Residuals:
    """Errors ÷ calibrated deviations in increasing order, which need not be independent.

    Args:
        independent: n, the number of independent errors that tell as much.
    """

    values: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    independent: Positive

    @classmethod
    def of(cls, values: Float64[Tensor, "*shape"], independent: float) -> "Residuals":
        finite = values.nan_to_num(_MAX, _MAX).clamp(max=_MAX).cpu()
        return cls(order_statistics(finite.flatten())[0], independent)

    def at(self, level: float, otherwise: float = math.inf) -> float:
        """The k-th of n independent residuals, k = ⌈(n + 1) · level⌉.

        If k is above n, it is the larger of `otherwise` and the n-th.
        """
        count, rank = int(self.independent), conformal_rank(int(self.independent), level)
        if rank <= count:
            return self._ranked(rank)
        return max(otherwise, self._ranked(count) if count else 0.0)

    def _ranked(self, rank: int) -> float:
        """The k (N + 1)/(n + 1)-th of all N, which covers as much as the k-th of n, on average."""
        share = rank / (int(self.independent) + 1)
        place = math.ceil(share * (len(self.values) + 1) - 1e-9)
        return self.values[min(place, len(self.values)) - 1]


@dataclass(frozen=True)
class Worth:
    """The numbers of independent errors that those of forecasts are worth.

    Args:
        together: of all steps.
        alone: of each step.
    """

    together: float
    alone: tuple[float, ...] = ()


@dataclass(frozen=True)
class SumCalibration:
    """The dependence of the steps of paths, and the residuals of sums from the first step on.

    Args:
        theta: moves the dependence of the paths (`models.forecasting.totals.sums`).
        pooled: |S − median| ÷ deviation, as of a step, of the sums S over the first 1, 2, … steps,
            or of their logarithms, if logarithms are forecast.
        own: those of the sums up to each step.
        rho: the correlation of the sums of two series (`models.forecasting.totals.sums`).
    """

    theta: Annotated[float, Interval(ge=-1, le=1)]
    pooled: Residuals
    own: tuple[Residuals, ...] = ()
    rho: Annotated[float, Interval(ge=0, lt=1)] = 0.0

    def half_widths(self, level: float, steps: int) -> PerStep:
        """Half the width of a conformal interval of each sum, in deviations, as of a step."""
        return _half_widths(self.pooled, self.own, level, steps)


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
        own: residuals of each step; () for versions of earlier releases, as for `sums`.
        sums: of sums over the steps.
    """

    scale: Positive
    growth: Number
    horizon: Count
    residuals: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    origins: Count
    independent: Positive
    own: tuple[Residuals, ...] = ()
    sums: SumCalibration | None = None
    has_intervals: ClassVar[bool] = True

    def factors(self, steps: int) -> PerStep:
        """c_h of so many steps; those beyond the horizon have that of the horizon."""
        return torch.exp(math.log(self.scale) + self.growth * progress(steps, self.horizon))

    def ranked(
        self, residuals: Float64[Tensor, "origins steps"], alone: Sequence[float] = ()
    ) -> "PathCalibration":
        """A copy with the residuals of the calibrated forecasts.

        Args:
            alone: the number of independent errors that those of each step are worth.
        """
        own = tuple(Residuals.of(*step) for step in zip(residuals.T, alone, strict=False))
        return replace(self, residuals=Residuals.of(residuals, self.independent).values, own=own)

    def half_widths(self, level: float, steps: int) -> PerStep:
        """Half the width of a conformal interval of each step, in deviations.

        It would contain a step of a new forecast with a probability of `level` or more, if that
        forecast were exchangeable with those that calibrated. Later ones are not, if the series
        changes. Infinite if errors are too few.
        """
        pooled = Residuals(self.residuals, self.independent)
        return _half_widths(pooled, self.own, level, steps)

    def reference(self) -> Reference:
        """The residuals, which together count as the independent ones, and labelled steps join."""
        residuals = np.asarray(self.residuals, dtype=float)
        each = min(1.0, self.independent / max(1, len(residuals)))
        return Reference(residuals, np.full(len(residuals), each), 1 / self.horizon)

    def describe(self) -> Json:
        return {
            "variance_scale": self.scale,
            "variance_scale_last_step": self.scale * math.exp(self.growth),
            "origins": self.origins,
            "independent_errors": self.independent,
            "rows": self.origins * self.horizon,
            **({} if self.sums is None else {"dependence_of_steps": self.sums.theta}),
        }


def _half_widths(pooled: Residuals, own: Sequence[Residuals], level: float, steps: int) -> PerStep:
    """Of each step, by its own residuals if they are worth enough for the level, else by all.

    Steps beyond the horizon have that of the horizon. A higher level never has a narrower interval.
    """
    of_all = pooled.at(level)
    each = [step.at(level, of_all) for step in own[:steps]] or [of_all]
    return torch.tensor(each + each[-1:] * (steps - len(each)), dtype=torch.float64)


def progress(steps: int, horizon: int) -> PerStep:
    """g_h = log h ÷ log H, at most 1; 0 if the horizon is one step."""
    if horizon == 1:
        return torch.zeros(steps, dtype=torch.float64)
    h = torch.arange(1, steps + 1, dtype=torch.float64)
    return (h.log() / math.log(horizon)).clamp(max=1)


def fit_scales(normal: Float64[Tensor, "origins steps"], independent: float) -> PathCalibration:
    """The most probable scales given errors ÷ predicted deviations, if errors are Gaussian.

    It minimises n · mean ½ (log c_h + z²_oh ÷ c_h) + ½ (a² + b²) ÷ `SCALE_SPREAD`², which is
    convex in (a, b): log c_h = a + b g_h.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - predictions do without

    origins, steps = normal.shape
    squares = normal.square().mean(0).numpy()  # of each step, over the origins
    design = np.stack([np.ones(steps), progress(steps, steps).numpy()], axis=1)
    precision = SCALE_SPREAD**-2

    def loss(at: np.ndarray) -> float:
        logs = design @ at
        fit = 0.5 * independent * float(np.mean(logs + squares * np.exp(-logs)))
        return fit + 0.5 * precision * float(at @ at)

    def slope(at: np.ndarray) -> np.ndarray:
        shrunk = squares * np.exp(-(design @ at))
        return 0.5 * independent / steps * design.T @ (1 - shrunk) + precision * at

    def bend(at: np.ndarray) -> np.ndarray:
        shrunk = squares * np.exp(-(design @ at))
        each = shrunk[:, None] * design
        return 0.5 * independent / steps * design.T @ each + precision * np.eye(2)

    options = {"gtol": _GRADIENT * (independent + precision)}
    at = minimize(loss, np.zeros(2), jac=slope, hess=bend, method="trust-exact", options=options).x
    return PathCalibration(math.exp(at[0]), float(at[1]), steps, (), origins, independent)
