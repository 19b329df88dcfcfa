"""Effects of what is known ahead: a regression whose errors are a series.

    u_t = x_tᵀβ + z_t,      β_j ~ N(0, σ² τ_j²)

The changes of z are an autoregression: regression with ARIMA errors (Hyndman and Athanasopoulos
2021, ch. 10). Members forecast z. Its weights φ and the effects β are found in turns.
Asymptotically the two are independent (Pierce 1971), so the posterior of β given φ (`Regression`)
is that of both. Each τ_j maximises the evidence (MacKay 1992; Tipping 2001). Noise has τ_j = 0, and
then no effect. Squares of numbers are regressors as well: heat and cold may both need power.

Another β leaves other errors z, which have other forecasts. In draws the known x ahead therefore
count from their expectation x̃ given the past of x:

    x_{T+h}ᵀ β̂ + (x_{T+h} − x̃_{T+h})ᵀ (β − β̂).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Bool, Float64
from torch import Tensor

from models.config.ranges import NotNegative
from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.member import (
    PathRequest,
    Products,
    Regression,
    Season,
    Values,
    filled,
    inverse_chi_square,
    num_known,
    unit_of,
)
from models.forecasting.windows import StepCount
from models.inference.noise import standard_normal

MOST = 64  # regressors
_TURNS, _ROUNDS, _FITS = 3, 30, 3
_FIRST, _WIDEST = 10.0, 1_000.0  # τ, in units of the noise's deviation per unit of a regressor
_LEAST = 0.3  # share of what is known of an effect that is due to the values; else it has none
_LEVELS = 3  # values of an input without a square; of two values it tells nothing new
_FARTHEST = 3.0  # standard deviations from the mean
_MOST_LAGS, _STEPS_PER_LAG = 6, 10
_BLOCK_VALUES = 2**23

Regressors = Float64[Tensor, "rows all regressors"]
"""Inputs of each step of a history, aligned with its values, and of the steps ahead."""


Weights = Float64[Tensor, "rows lags"]
Columns = Float64[Tensor, "rows steps columns"]


@dataclass(frozen=True)
class Errors:
    """What the effects leave: z, whose changes are an autoregression.

    Args:
        lags: the lags that have a weight φ.
        season: steps of the season, each of which has a mean of its own; 1 for none.
    """

    lags: Annotated[tuple[StepCount, ...], Len(0, 64)]
    season: Season = 1

    @property
    def of_changes(self) -> Autoregression:
        return Autoregression(self.lags, self.season, changes=True, has_phases=self.season > 1)

    @property
    def reach(self) -> int:
        """How many steps before a value it depends on."""
        return self.of_changes.reach

    def means(self, first: int, stop: int) -> Float64[Tensor, "steps means"]:
        """The terms of the mean of changes, c and s. The first step ahead is at 0."""
        waves = self.of_changes.waves_at(torch.arange(first, stop))
        return torch.cat([torch.ones(len(waves), 1, dtype=torch.float64), waves], 1)

    def counted(self, values: Values) -> Bool[Tensor, "rows filtered"]:
        """Which values are known and have all steps that they depend on in the history."""
        known = ~values.isnan()
        begun = known.int().cummax(1).values.bool()
        return known[:, self.reach :] & begun[:, : -self.reach]

    def weights(self, values: Values) -> Weights:
        """φ of each row: the posterior's mean."""
        scaled = filled(values) / unit_of(values).unsqueeze(1)
        terms = self.of_changes.terms(scaled)[:, self.reach - 1 :]
        terms = terms * self.counted(values).unsqueeze(-1)
        regression = Regression.of(terms.mT @ terms, num_known(values), self.of_changes.widths)
        return regression.mean[:, : len(self.lags)]

    def filtered(self, columns: Columns, weights: Weights) -> Float64[Tensor, "rows filtered _"]:
        """w_t − Σ φ_i w_{t−i} of the changes w of each column."""
        changes = columns.diff(dim=1)
        start, stop = self.reach - 1, changes.shape[1]
        filtered = changes[:, start:]
        for lag, weight in zip(self.lags, weights.unbind(1), strict=True):
            filtered = filtered - weight.view(-1, 1, 1) * changes[:, start - lag : stop - lag]
        return filtered

    def continued(
        self,
        columns: Columns,
        weights: Weights,
        of_means: Float64[Tensor, "rows means columns"],
        horizon: int,
    ) -> Float64[Tensor, "rows horizon columns"]:
        """Forecasts x̃ of the columns by the autoregression itself.

        Args:
            of_means: c and s of each column.
        """
        past = columns[:, -self.reach :].diff(dim=1)
        means = self.means(0, horizon) @ of_means
        for h in range(horizon):
            change = means[:, h]
            for lag, weight in zip(self.lags, weights.unbind(1), strict=True):
                change = change + weight.unsqueeze(1) * past[:, past.shape[1] - lag]
            past = torch.cat([past, change.unsqueeze(1)], 1)
        return columns[:, -1:] + past[:, past.shape[1] - horizon :].cumsum(1)


@dataclass(frozen=True)
class Effect:
    """The effects on some histories, and on the steps after them.

    Args:
        past: x_tᵀβ̂ of each step of the histories.
        ahead: the same of the steps ahead.
        spread: (x − x̃)ᵀ root, so that a draw is `ahead` + σ · spread · a standard normal vector.
        noise: s² of `Regression`.
        freedom: ν of `Regression`.
    """

    past: Values
    ahead: Float64[Tensor, "rows horizon"]
    spread: Float64[Tensor, "rows horizon regressors"]
    noise: Float64[Tensor, "rows"]
    freedom: Float64[Tensor, "rows"]

    def drawn(self, asked: PathRequest) -> Float64[Tensor, "draws 1 rows horizon"]:
        """The effect ahead in each draw."""
        width = 1 + self.spread.shape[-1]
        noise = standard_normal(asked.seed, "effects", 0, asked.draws, width).double()
        variance = self.noise * inverse_chi_square(noise[:, :1], self.freedom)
        shift = torch.einsum("rhk,dk->drh", self.spread, noise[:, 1:])
        return (self.ahead + variance.sqrt().unsqueeze(-1) * shift).unsqueeze(1)


@dataclass(frozen=True)
class _Fit:
    """The regression of histories given the weights φ of their errors, in units of each row.

    Args:
        products, count: of filtered regressors and values, less c and s.
        of_means: c and s of each regressor.
        beta: the posterior of β.
    """

    products: Products
    count: Float64[Tensor, "rows"]
    of_means: Float64[Tensor, "rows means regressors"]
    weights: Weights
    beta: Regression


@dataclass(frozen=True)
class Effects:
    """The prior of effects that training has found.

    Args:
        widths: τ_j of the regressors and of their squares, in units of the errors' noise.
        curved: the regressors whose squares have effects, too.
    """

    errors: Errors
    widths: Annotated[tuple[NotNegative, ...], Len(1, MOST)]
    curved: Annotated[tuple[StepCount, ...], Len(0, MOST)] = ()

    @classmethod
    def fit(cls, values: Values, regressors: Regressors, season: int) -> "Effects | None":
        """The widths that maximise the evidence of these histories; None if nothing has an effect.

        Args:
            regressors: as in `of`. More than `MOST` have no effects.
        """
        given = regressors.shape[-1]
        if not 0 < given <= MOST:
            return None
        curved = tuple(j for j in range(given) if len(regressors[..., j].unique()) > _LEVELS)
        curved = curved if given + len(curved) <= MOST else ()
        every = _with_squares(regressors, curved)
        effects = cls(_errors(values, season), (_FIRST,) * every.shape[-1], curved)
        for _ in range(_FITS):
            effects = effects._with_widths(values, every)
            if not any(effects.widths):
                return None
        return effects

    def of(self, values: Values, regressors: Regressors) -> Effect:
        """The effects on each history."""
        every = _with_squares(regressors, self.curved)
        per_row = every.shape[1] * (every.shape[2] + len(self.errors.lags))
        at_once = max(1, _BLOCK_VALUES // per_row)
        parts = [
            self._of(*part)
            for part in zip(values.split(at_once), every.split(at_once), strict=True)
        ]
        names = [field.name for field in fields(Effect)]
        return Effect(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def _of(self, values: Values, regressors: Regressors) -> Effect:
        steps, unit = values.shape[1], unit_of(values)
        past, ahead = regressors[:, :steps], regressors[:, steps:]
        fitted = self._fitted(values, past)
        beta = unit.unsqueeze(1) * fitted.beta.mean
        foreseen = self.errors.continued(past, fitted.weights, fitted.of_means, ahead.shape[1])
        return Effect(
            torch.einsum("rtk,rk->rt", past, beta),
            torch.einsum("rtk,rk->rt", ahead, beta),
            (ahead - foreseen) @ (unit.view(-1, 1, 1) * fitted.beta.root),
            fitted.beta.noise,
            fitted.beta.freedom,
        )

    @property
    def _widths(self) -> Float64[Tensor, "regressors"]:
        return torch.tensor(self.widths, dtype=torch.float64)

    def _with_widths(self, values: Values, regressors: Regressors) -> "Effects":
        """A copy with the widths that maximise the evidence, given the weights of the errors."""
        past = regressors[:, : values.shape[1]]
        fit, widths = self._fitted(values, past), self._widths
        for _ in range(_ROUNDS):
            regression = _regression(fit.products, fit.count, widths)
            squares = (regression.mean.square() / regression.noise.unsqueeze(1)).sum(0)
            widths = (squares / regression.known.sum(0).clamp(min=1e-12)).sqrt().clamp(max=_WIDEST)
        widths = torch.where(regression.known.mean(0) > _LEAST, widths, 0.0)
        return replace(self, widths=tuple(widths.tolist()))

    def _fitted(self, values: Values, past: Columns) -> _Fit:
        """Weights and effects, found in turns."""
        weights = values.new_zeros(len(values), len(self.errors.lags))
        for turn in range(_TURNS):
            found = self._given(weights, values, past)
            if turn < _TURNS - 1:
                beta = unit_of(values).unsqueeze(1) * found.beta.mean
                weights = self.errors.weights(values - torch.einsum("rtk,rk->rt", past, beta))
        return found

    def _given(self, weights: Weights, values: Values, past: Columns) -> _Fit:
        """The effects given the weights."""
        errors = self.errors
        u = filled(values) / unit_of(values).unsqueeze(1)
        both = errors.filtered(torch.cat([past, u.unsqueeze(-1)], -1), weights)
        means = errors.means(-both.shape[1], 0).expand(len(values), -1, -1)
        counted = errors.counted(values)
        terms = torch.cat([means, both], -1) * counted.unsqueeze(-1)
        each, m = terms.mT @ terms, means.shape[-1]
        prior = errors.of_changes.widths[len(errors.lags) :] ** -2
        of_means = torch.linalg.solve(each[:, :m, :m] + prior.diag(), each[:, :m, m:])
        products = each[:, m:, m:] - each[:, m:, :m] @ of_means
        count = counted.sum(1).double()
        beta = _regression(products, count, self._widths)
        return _Fit(products, count, of_means[..., :-1], weights, beta)


def _regression(
    products: Products, count: Float64[Tensor, "rows"], widths: Float64[Tensor, "regressors"]
) -> Regression:
    """`Regression` with the noise that maximises the evidence instead of a prior of it."""
    regression = Regression.of(products, count, widths)
    squares = products[:, -1, -1] - (regression.mean * products[:, :-1, -1]).sum(1)
    freedom = (count - regression.known.sum(1)).clamp(min=1)
    noise = squares.clamp(min=0) / freedom + torch.finfo(torch.float64).tiny
    return replace(regression, noise=noise, freedom=freedom)


def _with_squares(regressors: Regressors, some: Sequence[int]) -> Float64[Tensor, "rows all both"]:
    """The regressors, and the squares of some. Squares stop growing far out: effects are lines
    there.
    """
    bounded = regressors[..., list(some)].clamp(-_FARTHEST, _FARTHEST)
    return torch.cat([regressors, bounded.square()], -1)


def _errors(values: Values, season: int) -> Errors:
    """The lags and the season for which the shortest history is long enough."""
    shortest = int(num_known(values).min())
    lags = [*range(1, 1 + max(2, min(_MOST_LAGS, shortest // _STEPS_PER_LAG)))]
    repeats = season > 1 and 2 * season <= shortest
    if repeats and 3 * season <= shortest:
        lags = sorted({*lags, season})
    return Errors(tuple(lags), season if repeats else 1)
