"""Exponential smoothing with a posterior of its parameters, states and noise.

The state has a level l, a trend b and a value s for each step of the season. With a single source
of error (Hyndman et al. 2008, "Forecasting with Exponential Smoothing", chapter 3)

    u_t = l_{t−1} + φ b_{t−1} + s_{t−m} + e_t,      e_t ~ N(0, σ²)
    l_t = l_{t−1} + φ b_{t−1} + α e_t,   b_t = φ b_{t−1} + β e_t,   s_t = s_{t−m} + γ e_t.

The errors are linear in the state x₀ before the first value: e = e⁰ + E x₀. So the posterior of x₀
and σ² given (α, β, φ, γ) is a `Regression`. These four, transformed to the real line, are drawn by
importance sampling from a population of particles, which training has moved to where the posterior
is (Cappé et al. 2004, population Monte Carlo). Every history weighs the population anew, so that a
forecast needs no fit.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from annotated_types import Len
from jaxtyping import Float64, Int
from torch import Tensor

from models.config.ranges import Number, Positive
from models.forecasting.classics.member import (
    DRIFT,
    LEVEL,
    PathRequest,
    Regression,
    Season,
    Values,
    evenly,
    in_units,
    missing_share,
    num_known,
    pick,
    season_basis,
    unit_of,
)
from models.forecasting.rollout import Paths
from models.inference.noise import standard_normal
from models.prediction.pauses import Pause, go_on
from models.randomness import generator

Trend = Literal["none", "drift", "damped"]
Particles = Float64[Tensor, "particles 4"]
Filled = Float64[Tensor, "rows particles columns"]

MOST = 1_024  # particles in a stored member
_FIRST, _KEPT = 256, 64  # particles of the prior, and of the population
_FREEDOM = 5  # of Student's t, from which the population is drawn
_DEFENSIVE = 0.1  # the prior's share in it, which bounds the weights (Hesterberg 1995)
_WIDER = 1.5  # the proposal's covariance ÷ that of the posterior
_IMPOSSIBLE = -1e30  # log probability
_BLOCK = 32  # steps of errors that are kept before their products are added
_BLOCK_VALUES = 2**22  # of all states of the rows at once
_SEASON = 5.0  # prior deviation of the waves of x₀
# Means and standard deviations of logit α, logit β/α, logit (φ − 0.8)/0.2 and logit γ/(1 − α).
_PRIOR = ((0.0, 1.5), (-2.0, 1.5), (2.0, 1.0), (-1.5, 1.5))


@dataclass(frozen=True)
class Parameters:
    """α, β, φ and γ of each particle."""

    level: Float64[Tensor, "particles"]
    trend: Float64[Tensor, "particles"]
    damping: Float64[Tensor, "particles"]
    season: Float64[Tensor, "particles"]


@dataclass(frozen=True)
class State:
    """The state after the last value, as a function of (1, x₀), and the posterior of x₀ and σ².

    Args:
        level, trend, season: columns belong to 1 and x₀; the season's next step is first.
        start: the posterior.
    """

    level: Filled
    trend: Filled
    season: Float64[Tensor, "rows particles season columns"]
    start: Regression

    @property
    def log_prob(self) -> Float64[Tensor, "rows particles"]:
        """Log marginal likelihood, up to a constant."""
        total = self.start.log_evidence
        return total.masked_fill(self.start.failed | total.isnan(), _IMPOSSIBLE)


@dataclass(frozen=True)
class Smoothing:
    """Exponential smoothing.

    Args:
        trend: none, a constant drift (as in the method Theta), or one that changes and fades.
        season: steps of the season, which is added; 1 for none.
        population: the particles; empty before training.
        offsets: log prior − log proposal of each particle.
        learned: the log marginal likelihood of each in training, mean over histories.
        steps: the mean length of a training history.
    """

    trend: Trend
    season: Season
    population: Annotated[tuple[tuple[Number, Number, Number, Number], ...], Len(0, MOST)] = ()
    offsets: Annotated[tuple[Number, ...], Len(0, MOST)] = ()
    learned: Annotated[tuple[Number, ...], Len(0, MOST)] = ()
    steps: Positive = 1.0

    @property
    def name(self) -> str:
        """In words."""
        parts = [
            "exponential smoothing",
            {"none": "", "drift": "drift", "damped": "trend"}[self.trend],
        ]
        return ", ".join([*filter(None, parts), *(["season"] if self.season > 1 else [])])

    def adapted(self, values: Values) -> "Smoothing":
        """A copy whose particles lie where the posteriors of these histories do."""
        values = evenly(values)
        particles, offsets = self._prior(_FIRST), torch.zeros(_FIRST, dtype=torch.float64)
        for stage in range(2):
            found = self._filtered(values, particles).log_prob
            weights = (found + offsets).softmax(1).mean(0)
            particles, offsets = self._proposed(particles, weights, stage)
        learned = self._filtered(values, particles).log_prob.mean(0)
        rows = tuple((a, b, c, d) for a, b, c, d in particles.tolist())
        return replace(
            self,
            population=rows,
            offsets=tuple(offsets.tolist()),
            learned=tuple(learned.tolist()),
            steps=float(num_known(values).mean()),
        )

    def paths(self, values: Values, asked: PathRequest) -> Paths:
        """Sample paths. Rows are filtered as many at once as memory allows."""
        per_row = len(self.population) * (self.season + 2) * self._columns
        parts = values.split(max(1, _BLOCK_VALUES // per_row))
        return Paths.concatenate([self._paths(part, asked) for part in parts], dim=2)

    def _paths(self, values: Values, asked: PathRequest) -> Paths:
        """Draw particles, states and noise, and continue from there."""
        particles = torch.tensor(self.population, dtype=torch.float64)
        state = self._filtered(values, particles, asked.pause)
        offsets, learned = torch.tensor([self.offsets, self.learned], dtype=torch.float64)
        share = missing_share(values, self.steps).unsqueeze(1)
        chosen = resampled((state.log_prob + offsets + share * learned).softmax(1), asked.draws)
        purpose = f"{self.name} {self.season}"
        noise = standard_normal(asked.seed, purpose, 0, asked.draws, self._columns).double()
        start, variance = state.start.at(chosen).drawn(noise)
        start = torch.cat([torch.ones_like(start[..., :1]), start], -1)
        level, trend = (_at_end(part, chosen, start) for part in (state.level, state.trend))
        season = _at_end(state.season, chosen, start.unsqueeze(2))
        of = self._parameters(particles)
        a, b, p, g = (
            part[chosen].T.unsqueeze(1) for part in (of.level, of.trend, of.damping, of.season)
        )
        deviation = variance.sqrt().T.unsqueeze(1)

        def ahead(level: Tensor, trend: Tensor, season: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
            """Value and mean of each step ahead, in units: [draws, paths, rows]."""
            for h in range(asked.horizon):
                asked.pause()
                place = h % self.season
                moved = p * trend
                mean = level + moved + season[..., place]
                normal = standard_normal(
                    asked.seed, f"{purpose} step {h}", 0, asked.draws, asked.paths
                )
                error = deviation * normal.double().unsqueeze(-1)
                level, trend = level + moved + a * error, moved + b * error
                season = season.expand(*error.shape, -1).clone()
                season[..., place] += g * error
                yield mean + error, mean.expand_as(error)

        return in_units(ahead(level, trend, season), first_known(values), unit_of(values), variance)

    @property
    def _columns(self) -> int:
        """The number of columns: 1 and those of x₀."""
        return 2 + (self.trend != "none") + season_basis(self.season).shape[1]

    def _prior(self, count: int) -> Particles:
        return torch.randn(count, 4, generator=generator(0, "smoothing", "prior")).double()

    def _proposed(
        self, particles: Particles, weights: Float64[Tensor, "particles"], stage: int
    ) -> tuple[Float64[Tensor, "found 4"], Float64[Tensor, "found"]]:
        """Particles from Student's t around the weighted ones, and log prior − log proposal of
        each.
        """
        from scipy import stats  # noqa: PLC0415 - predictions do without

        mean = weights @ particles
        centred = particles - mean
        covariance = _WIDER * (centred.T @ (weights.unsqueeze(1) * centred))
        root = torch.linalg.cholesky(covariance + 0.05 * torch.eye(4, dtype=torch.float64))
        draws = generator(0, "smoothing", "population", stage)
        normal = torch.randn(_KEPT, 4, generator=draws).double()
        chi = torch.randn(_KEPT, _FREEDOM, generator=draws).double().square().mean(1, keepdim=True)
        proposed = mean + (normal / chi.sqrt()) @ root.T
        count = round(_DEFENSIVE * _KEPT)
        proposed[:count] = self._prior(count)
        density = stats.multivariate_t(mean.numpy(), (root @ root.T).numpy(), df=_FREEDOM)
        student = torch.from_numpy(density.logpdf(proposed.numpy()))
        prior = -0.5 * proposed.square().sum(1) - 2 * math.log(2 * math.pi)
        both = torch.logaddexp(prior + math.log(_DEFENSIVE), student + math.log1p(-_DEFENSIVE))
        return proposed, prior - both

    def _parameters(self, particles: Particles) -> Parameters:
        location, spread = torch.tensor(_PRIOR, dtype=torch.float64).T
        alpha, beta, phi, gamma = torch.sigmoid(location + spread * particles).unbind(1)
        return Parameters(
            alpha,
            alpha * beta if self.trend == "damped" else 0 * beta,
            {"none": 0 * phi, "drift": 0 * phi + 1, "damped": 0.8 + 0.2 * phi}[self.trend],
            (1 - alpha) * gamma if self.season > 1 else 0 * gamma,
        )

    def _filtered(self, values: Values, particles: Particles, pause: Pause = go_on) -> State:
        """Run the recursion over the values, for 1 and for every column of x₀."""
        scaled = (values - first_known(values).unsqueeze(1)) / unit_of(values).unsqueeze(1)
        of = self._parameters(particles)
        rows, steps = scaled.shape
        # before the first value: 0, and a 1 for each column of x₀
        shape, basis = (rows, len(particles), self._columns), season_basis(self.season)
        level, trend = (torch.zeros(shape, dtype=torch.float64) for _ in range(2))
        season = torch.zeros(*shape[:2], self.season, self._columns).double()
        level[..., 1] = 1.0
        if self.trend != "none":
            trend[..., 2] = 1.0
        season[..., self._columns - basis.shape[1] :] = basis.roll(steps % self.season, 0)
        products = torch.zeros(rows, len(particles), self._columns, self._columns).double()
        a, b, p, g = (x.unsqueeze(-1) for x in (of.level, of.trend, of.damping, of.season))
        known, begun, place = ~scaled.isnan(), torch.zeros(rows, 1, 1).double(), 0
        errors = []
        for t in range(steps):
            pause()
            seen = known[:, t].double().view(-1, 1, 1)
            begun = torch.maximum(begun, seen)
            moved = p * trend
            place = t % self.season
            error = -(level + moved + season[:, :, place])
            error[..., 0] += scaled[:, t : t + 1].nan_to_num(0.0)
            error = error * seen
            level = level + begun * moved + a * error
            trend = trend + begun * (moved - trend) + b * error
            if self.season > 1:
                season[:, :, place] += g * error
            errors.append(error)
            if len(errors) == _BLOCK or t == steps - 1:
                block = torch.stack(errors, 2)
                products += block.mT @ block
                errors = []
        season = season.roll(-(steps % self.season), 2)
        # e⁰ = −E x₀ + e: the values of the regression come last
        signs = torch.tensor([*[-1.0] * (self._columns - 1), 1.0], dtype=torch.float64)
        products = products.roll((-1, -1), (-2, -1)) * signs * signs.unsqueeze(1)
        widths = [LEVEL, *([DRIFT] if self.trend != "none" else [])]
        widths += [_SEASON] * (self._columns - 1 - len(widths))
        count = known.sum(1).double().unsqueeze(1)
        start = Regression.of(products, count, torch.tensor(widths, dtype=torch.float64))
        return State(level, trend, season, start)


def _at_end(
    columns: Tensor, chosen: Int[Tensor, "rows draws"], start: Tensor
) -> Float64[Tensor, "draws 1 rows *_"]:
    """A part of the state as a number, given (1, x₀) of each draw."""
    return (pick(columns, chosen) * start).sum(-1).transpose(0, 1).unsqueeze(1)


def first_known(values: Values) -> Float64[Tensor, "rows"]:
    """The first value of each row that is not missing; 0 if all are."""
    known = ~values.isnan()
    first = values.gather(1, known.int().argmax(1, keepdim=True)).squeeze(1)
    return first.nan_to_num(0.0)


def resampled(weights: Float64[Tensor, "rows particles"], draws: int) -> Int[Tensor, "rows draws"]:
    """Particles in proportion to their weights (systematic resampling: Kitagawa 1996)."""
    places = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
    ends = weights.cumsum(1)
    ends = ends / ends[:, -1:]
    return torch.searchsorted(ends, places.expand(len(weights), -1).contiguous()).clamp(
        max=weights.shape[1] - 1
    )
