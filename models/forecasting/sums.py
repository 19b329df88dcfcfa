"""Sums over the steps of a forecast: from whole paths, calibrated by sums that were observed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float64
from torch import Tensor

from models.evaluation.path_calibration import Residuals, SumCalibration, Worth
from models.forecasting.coupling import Draws, PerStep, Spread, couple, fit_theta, shuffled

_FIT_PATHS = 400  # that fit: a median of so many is known to 6 % of a deviation


@dataclass(frozen=True)
class Sums:
    """The sums over the first 1, 2, … steps of each forecast.

    Args:
        draws: of the sums, one of each path.
        is_log: whether deviations are those of logarithms, as of a forecast of logarithms.
    """

    draws: Draws
    is_log: bool

    @classmethod
    def of(cls, paths: Draws, *, is_log: bool) -> "Sums":
        return cls(paths.cumsum(-1), is_log)

    @cached_property
    def spread(self) -> Spread:
        return Spread.of(self.on_scale(self.draws))

    def on_scale(self, sums: Float64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
        """The logarithms of sums of positive values."""
        return sums.log() if self.is_log else sums

    def within(self, scores: Sequence[Float64[Tensor, "steps"]]) -> list[tuple[PerStep, PerStep]]:
        """The intervals that contain sums with at most these residuals."""
        middle, halves = self.spread.median, [score * self.spread.deviation for score in scores]
        ends = [(middle - half, middle + half) for half in halves]
        return [(low.exp(), high.exp()) if self.is_log else (low, high) for low, high in ends]


def calibrate_sums(
    paths: Draws, targets: Float64[Tensor, "targets"], worth: Worth, *, is_log: bool
) -> SumCalibration:
    """The dependence of the steps and the residuals of sums, from forecasts of known steps.

    Args:
        paths: of forecasts whose steps are calibrated.
        targets: of all steps; those of each forecast are consecutive.
        worth: of the errors of the sums.
    """
    paths = paths[:: -(-len(paths) // _FIT_PATHS)]
    values = targets.view(1, *paths.shape[1:])
    truth = Sums.of(values, is_log=is_log)
    observed = truth.on_scale(truth.draws)[0]

    def of(paths: Draws) -> Spread:
        return Sums.of(paths, is_log=is_log).spread

    spreads = of(paths), of(shuffled(paths, 0)), of(paths.sort(0).values)
    theta = fit_theta(spreads, observed, worth.together)
    moved = of(couple(paths, theta, 0))
    residuals = moved.standardised(observed).abs()
    own = [Residuals.of(*one) for one in zip(residuals.T, worth.alone, strict=False)]
    return SumCalibration(theta, Residuals.of(residuals, worth.together), tuple(own))
