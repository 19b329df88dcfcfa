"""Sums over the steps of a forecast: from whole paths, calibrated by sums that were observed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float64
from torch import Tensor

from models.evaluation.path_calibration import Residuals, SumCalibration, Worth
from models.forecasting.observation import Observation
from models.forecasting.totals.across import fit_rho
from models.forecasting.totals.coupling import Draws, PerStep, Spread, couple, fit_theta, shuffled

_LEAST = 1e-12  # deviation of sums that are always the same, of their size
_FIT_PATHS = 400  # that fit: a median of so many is known to 6 % of a deviation


@dataclass(frozen=True)
class Sums:
    """The sums over the first 1, 2, … steps of each forecast.

    Args:
        draws: of the sums, one of each path.
        observation: of the steps. Deviations are of logarithms if the steps are forecast as these.
    """

    draws: Draws
    observation: Observation

    @classmethod
    def of(cls, paths: Draws, observation: Observation) -> "Sums":
        return cls(paths.cumsum(-1), observation)

    @cached_property
    def spread(self) -> Spread:
        """Whole numbers stand for intervals of length 1: their variance has 1/12 more."""
        spread = Spread.of(self.on_scale(self.draws))
        if self.observation.integer:
            return replace(spread, deviation=(spread.deviation.square() + 1 / 12).sqrt())
        size = self.draws.abs().amax(0)
        size = torch.where((size > 0) & (not self.observation.is_log), size, 1.0)
        return replace(spread, deviation=torch.hypot(spread.deviation, _LEAST * size))

    def on_scale(self, sums: Float64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
        """The logarithms of sums of positive values."""
        return sums.log() if self.observation.is_log else sums

    def within(self, scores: Sequence[Float64[Tensor, "steps"]]) -> list[tuple[PerStep, PerStep]]:
        """The intervals that contain sums with at most these residuals."""
        middle, halves = self.spread.median, [score * self.spread.deviation for score in scores]
        ends = [(middle - half, middle + half) for half in halves]
        if self.observation.is_log:
            return [(low.exp(), high.exp()) for low, high in ends]
        return [
            (self._possible(low, up=True), self._possible(high, up=False)) for low, high in ends
        ]

    def _possible(self, ends: PerStep, *, up: bool) -> PerStep:
        """Ends within the sums of the bounds, at whole numbers where steps are whole."""
        steps = torch.arange(1, ends.shape[-1] + 1).to(ends)
        if self.observation.integer:
            ends = ends.ceil() if up else ends.floor()
        low, high = self.observation.lower, self.observation.upper
        ends = ends if low is None else torch.maximum(ends, low * steps)
        return ends if high is None else torch.minimum(ends, high * steps)


def _left(paths: Draws, values: PerStep, observation: Observation) -> float:
    """The mean square of the steps' standardised errors, which their calibration has left.

    The prior of its scales, which are few, keeps them near 1.
    """
    steps = Sums(paths, observation)
    squares = steps.spread.standardised(steps.on_scale(values)).square()
    return float(squares.mean().clamp(min=_LEAST))


def calibrate_sums(
    paths: Draws,
    targets: Float64[Tensor, "targets"],
    worth: Worth,
    observation: Observation,
    times: Sequence[object] = (),
) -> SumCalibration:
    """The dependence of the steps and the residuals of sums, from forecasts of known steps.

    Args:
        paths: of forecasts whose steps are calibrated.
        targets: of all steps; those of each forecast are consecutive.
        worth: of the errors of the sums.
        times: at which the forecasts begin; without them series are taken as independent.
    """
    paths = paths[:: -(-len(paths) // _FIT_PATHS)]
    values = targets.view(1, *paths.shape[1:])
    truth = Sums.of(values, observation)
    observed = truth.on_scale(truth.draws)[0]

    def of(paths: Draws) -> Spread:
        return Sums.of(paths, observation).spread

    spreads = of(paths), of(shuffled(paths, 0)), of(paths.sort(0).values)
    theta = fit_theta(spreads, observed, worth.together, _left(paths, values[0], observation))
    moved = of(couple(paths, theta, 0))
    errors = moved.standardised(observed)
    residuals = errors.abs()
    own = [Residuals.of(*one) for one in zip(residuals.T, worth.alone, strict=False)]
    last = errors[:, -1].cpu().numpy()
    rho = fit_rho(last, times, worth.alone[-1] / len(last)) if times and worth.alone else 0.0
    return SumCalibration(theta, Residuals.of(residuals, worth.together), tuple(own), rho)
