"""Sums over the steps of a forecast and over series, whose dependence is calibrated.

A sum is as uncertain as its terms and as they go together. Calibration scales each step; the
dependence of the terms is then moved by the order of the draws alone (the Schaake shuffle: Clark et
al. 2004, with a copula for the template): each step, or each series, keeps its draws.

*Steps of a forecast* are ordered by scores. The paths' own dependence is moved by one parameter θ
towards steps that all move together (θ = 1) or towards independent ones (θ = −1). With the normal
scores z_h of a path's ranks and standard normals e (one for the path) and e_h (one for each step):

    θ ≥ 0: √(1 − θ) z_h + √θ e,        θ < 0: √(1 + θ) z_h + √−θ e_h.

So the correlation matrix R of the scores becomes (1 − θ) R + θ 1 or (1 + θ) R − θ I.

*Paths of several series* are drawn with the same noise, or each for itself: their order says
nothing. For sums over series each path has a score √ρ w + √(1 − ρ) e with a standard normal w that
all series share and e of its own, so that scores of two series have the correlation ρ. The paths of
a series are put in the order of these scores by their sums over the horizon, and stay whole.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor
from torch.special import ndtri

from models.device import to_host
from models.evaluation.calibration import PENALTY_SCALE
from models.evaluation.path_calibration import ONE_DEVIATION, Residuals, SumCalibration, Worth
from models.forecasting.observation import Observation
from models.inference.noise import standard_normal
from models.prediction.monte_carlo_error import standard_error
from models.prediction.options import BatchOptions
from models.prediction.outputs.forecasts import coordinates_of_sums
from models.prediction.prediction import bounds
from models.prediction.summary import Summary

Draws = Float64[Tensor, "paths rows steps"]
PerStep = Float64[Tensor, "rows steps"]

_THETAS = 201  # values of θ that are compared: to a hundredth


@dataclass(frozen=True)
class Spread:
    """Median and deviation, which a few diverging paths hardly move.

    The deviation is half the distance of the quantiles that are 1 deviation from a Gaussian's mean.
    """

    median: PerStep
    deviation: PerStep

    @classmethod
    def of(cls, draws: Draws) -> "Spread":
        levels = draws.new_tensor([1 - ONE_DEVIATION, 0.5, ONE_DEVIATION])
        low, middle, high = quantiles(draws, levels)
        return cls(middle, 0.5 * (high - low))

    def standardised(self, values: PerStep) -> PerStep:
        """(value − median) ÷ deviation."""
        return (values - self.median) / self.deviation


def quantiles(
    draws: Float64[Tensor, "paths *rest"], levels: Float64[Tensor, "levels"]
) -> Float64[Tensor, "levels *rest"]:
    """Quantiles of the draws, interpolated between the order statistics of ranks (n + 1) p.

    Beyond the ends they are the smallest and the largest draw (Hyndman and Fan 1996, type 6).
    """
    count = len(draws)
    place = ((count + 1) * levels - 1).clamp(0, count - 1)
    below = place.floor().long().clamp(max=max(count - 2, 0))
    share = (place - below).view(-1, *[1] * (draws.ndim - 1))
    ordered = draws.sort(0).values
    above = (below + 1).clamp(max=count - 1)
    return ordered[below] + share * (ordered[above] - ordered[below])


def couple(draws: Draws, theta: float, seed: int) -> Draws:
    """The same draws of each step in another order, which moves their dependence by θ.

    All rows have the same noise, so that a row's result does not depend on the others.

    Args:
        draws: whole paths, each of which goes through all steps of a row.
        theta: from −1 to 1; at 0 the paths stay as they are.
    """
    if theta == 0:
        return draws
    paths, _, steps = draws.shape
    if theta > 0:
        noise = standard_normal(seed, "steps together", 0, paths, 1)
    else:
        each = [standard_normal(seed, f"step {h} apart", 0, paths, 1) for h in range(steps)]
        noise = torch.cat(each, dim=1)
    ranks = draws.argsort(0).argsort(0)
    scores = ndtri((ranks + 0.5) / paths)
    mixed = math.sqrt(1 - abs(theta)) * scores
    mixed = mixed + math.sqrt(abs(theta)) * noise.to(scores).unsqueeze(1)
    return draws.sort(0).values.gather(0, mixed.argsort(0).argsort(0))


def fit_theta(
    spreads: tuple[Spread, Spread, Spread], truth: PerStep, independent: float, left: float = 1.0
) -> float:
    """The most probable θ given sums over steps that were observed, if their errors are Gaussian.

    It minimises n · mean ½ (log V + e² ÷ κV) + ½ (θ ÷ ½)² on a grid. e is the distance of a sum
    from the median of the paths' sums. V, the variance of a sum, is linear in the correlations of
    its steps, and so between that of the paths and that of steps that move together or apart. κ
    keeps apart what the steps' own errors say of their size: where all of them were smaller than
    forecast, so were their sums, however the steps depend on each other.

    Args:
        spreads: of sums of the paths' steps, of independent steps, and of comonotone ones.
        independent: n, the number of independent errors that those of the sums are worth.
        left: κ, the mean square of the steps' standardised errors.
    """
    own, apart, together = spreads
    grid = torch.linspace(-1, 1, _THETAS, dtype=torch.float64)
    theta = grid.to(truth).view(-1, 1, 1)
    end = torch.where(theta < 0, apart.deviation.square(), together.deviation.square())
    variance = (1 - theta.abs()) * own.deviation.square() + theta.abs() * end
    error = (truth - own.median).square() / left
    fit = 0.5 * (variance.log() + error / variance).mean((1, 2)).cpu()
    loss = independent * fit + 0.5 * (grid / PENALTY_SCALE).square()
    return float(grid[loss.nan_to_num(math.inf).argmin()])


def shuffled(draws: Draws, seed: int) -> Draws:
    """The draws of each step in a random order, so that steps are independent."""
    paths, _, steps = draws.shape
    each = [standard_normal(seed, f"step {h} alone", 0, paths, 1) for h in range(steps)]
    order = torch.cat(each, dim=1).argsort(0).to(draws.device)
    return draws.gather(0, order.unsqueeze(1).expand_as(draws))


_RHOS = np.linspace(0.0, 0.95, 96)  # values of ρ that are compared


def pair(draws: Draws, rho: float, seed: int) -> Draws:
    """The same paths of each series in the order that makes sums of two go together by ρ."""
    paths, series, _ = draws.shape
    shared = standard_normal(seed, "all series", 0, paths, 1)
    own = torch.cat(
        [standard_normal(seed, f"series {k}", 0, paths, 1) for k in range(series)], dim=1
    )
    ranks = (math.sqrt(rho) * shared + math.sqrt(1 - rho) * own).argsort(0).argsort(0)
    by_sum = draws.sum(-1).argsort(0)
    chosen = by_sum.gather(0, ranks.to(draws.device))
    return draws.gather(0, chosen.unsqueeze(-1).expand_as(draws))


def fit_rho(
    errors: Float64[np.ndarray, "forecasts"], times: Sequence[object], worth: float
) -> float:
    """The most probable ρ of errors of forecasts that begin at these times, if they are Gaussian.

    Those of one time are exchangeable: with m of them, 1 + (m − 1) ρ is the variance of √m times
    their mean, and 1 − ρ that of the rest, in units of their variance. The prior of ρ is
    N(0, ½²) above 0. Errors of other times are taken as independent, and count by `worth`.

    Args:
        errors: in predicted deviations.
        worth: the number of independent errors that one error is worth, from 0 to 1.
    """
    known = np.isfinite(errors)
    errors, at = errors[known], np.asarray([str(one) for one in times])[known]
    size = float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else 0.0
    if not size:
        return 0.0
    loss = 0.5 * np.square(_RHOS / PENALTY_SCALE)
    for time in np.unique(at):
        group = errors[at == time] / size
        mean, m = group.mean(), len(group)
        together, apart = 1 + (m - 1) * _RHOS, 1 - _RHOS
        rest = float(np.square(group - mean).sum())
        logs = np.log(together) + (m - 1) * np.log(apart)
        loss = loss + 0.5 * worth * (logs + m * mean**2 / together + rest / apart)
    return float(_RHOS[loss.argmin()])


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


# What a prediction says about sums, and how far sampling moves it.

BATCHES = 10  # a standard error from so many is known to a quarter


def summarise(
    sums: Sums,
    means: Float64[Tensor, "samples steps"],
    calibration: SumCalibration | None,
    options: BatchOptions,
) -> Summary:
    """The answer to `totals`.

    Args:
        means: E(y_h | w) of each step and weight draw; the steps of a forecast are consecutive.
        calibration: None if there is none: then no interval is conformal.
    """
    of_draws = means.unflatten(1, sums.draws.shape[1:]).cumsum(-1).flatten(1)
    summary = _summary(sums, of_draws, options)
    steps = sums.draws.shape[-1]
    if calibration is None or "conformal" not in options.interval_kinds or not options.intervals:
        return summary
    ends = sums.within([calibration.half_widths(level, steps) for level in options.intervals])
    conformal = bounds("conformal", [(low.flatten(), high.flatten()) for low, high in ends])
    return summary.with_values(**to_host(conformal))


def over_series(
    steps: Sums, means: Float64[Tensor, "samples groups steps"], options: BatchOptions
) -> tuple[Summary, Summary]:
    """The same of sums over series: of each step, and up to each step, group after group.

    Args:
        steps: draws of the sum over the series of each group at each step.
        means: of these sums, of each weight draw.
    """
    sums = Sums.of(steps.draws, steps.observation)
    return (
        _summary(steps, means.flatten(1), options),
        _summary(sums, means.cumsum(-1).flatten(1), options),
    )


def with_errors(summary: Summary, batches: Sequence[Sums], options: BatchOptions) -> Summary:
    """The answer with the standard error of each number that comes from draws of sums.

    It is that of the mean over independent batches of weight draws, of which each is calibrated and
    summed for itself (batch means: Asmussen and Glynn 2007, Stochastic Simulation, §IV.5).
    """
    each = [_of_draws(batch, options) for batch in batches]
    errors = {k: standard_error(torch.stack([one[k] for one in each])) for k in each[0]}
    return replace(summary, errors={**to_host(errors), **summary.errors})


def _summary(sums: Sums, means: Float64[Tensor, "samples rows"], options: BatchOptions) -> Summary:
    errors = {"mean": standard_error(means)} if len(means) > 1 else {}
    return Summary(
        values=to_host({"mean": means.mean(0), **_of_draws(sums, options)}),
        errors=to_host(errors),
        coordinates=coordinates_of_sums(options),
    )


def _of_draws(sums: Sums, options: BatchOptions) -> dict[str, Tensor]:
    """Median, deviation, bounds of credible intervals, quantiles, probabilities of thresholds."""
    levels = options.intervals if "credible" in options.interval_kinds else ()
    wanted = [0.5, *(0.5 * (1 - p) for p in levels), *(0.5 * (1 + p) for p in levels)]
    draws = sums.draws.flatten(1)
    values = quantiles(draws, draws.new_tensor([*wanted, *options.quantiles])).T
    found = {"median": values[:, 0], "deviation": draws.std(0, correction=0)}
    if levels:
        found["lower"] = values[:, 1 : len(levels) + 1]
        found["upper"] = values[:, len(levels) + 1 : len(wanted)]
    if options.quantiles:
        found["quantile"] = values[:, len(wanted) :]
    if options.totals is not None and options.totals.exceeds:
        above = [(draws > t).to(draws).mean(0) for t in options.totals.exceeds]
        found["exceeds"] = torch.stack(above, dim=1)
    return found
