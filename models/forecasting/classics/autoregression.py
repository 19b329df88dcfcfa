r"""Autoregressions with a posterior of their coefficients and noise.

The series, or its differences w from step to step and from season to season, follow

    w_t = c + s_{t mod m} + Σ_{i ∈ lags} φ_i w_{t−i} + e_t,      e_t ~ N(0, σ²)

with a further s for each further season m, and normal priors that are the narrower the longer the
lag (Litterman 1986), so that many lags do no harm and stand in for moving averages. All
coefficients and σ² have a normal inverse gamma posterior in closed form, which is computed anew for
every history.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Float64, Int64
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from models.config.ranges import Flag, NotNegative, Number, Positive
from models.forecasting.classics.member import (
    FEW,
    Asked,
    Season,
    Shorter,
    Values,
    evenly,
    filled,
    given,
    inverse_chi_square,
    missing_share,
    noise_posterior,
    season_basis,
    unit_of,
)
from models.forecasting.rollout import Paths
from models.forecasting.windows import StepCount
from models.prediction.noise import standard_normal

# Priors in units of the standard deviation of changes.
_LAG, _LEVEL, _DRIFT, _SEASON = 0.5, 10.0, 0.3, 3.0
_FINE = 0.7  # of the waves of a season after the first 12
_LARGEST = 10.0  # of a path, in units of the history's size: what explodes is cut there

MOST = 256  # terms of a stored member
_BLOCK_VALUES = 2**23  # of all terms of the rows at once
Products = Annotated[tuple[Number, ...], Len(0, MOST)]

Coefficients = Float64[Tensor, "rows draws terms"]


@dataclass(frozen=True)
class Autoregression:
    """An autoregression.

    Args:
        lags: that have a coefficient; none for a random walk.
        season: steps of the season, or of the longest; 1 for none.
        changes: whether it is of changes from step to step.
        seasonal_changes: whether it is of changes from season to season.
        apart: the season of these changes; None for the longest.
        waves: sines and cosines of the longest season, at most; of each shorter one up to 12.
        has_phases: whether each step of a season has a mean of its own.
        learned: the products of terms and values in training, the values last, per history.
        count: known values in each, on average.
        steps: of a training history, on average.
        shorter: the steps of further seasons.
    """

    lags: Annotated[tuple[StepCount, ...], Len(0, 64)]
    season: Season = 1
    changes: Flag = False
    seasonal_changes: Flag = False
    has_phases: Flag = False
    learned: Annotated[tuple[Products, ...], Len(0, MOST)] = ()
    count: NotNegative = 0.0
    steps: Positive = 1.0
    shorter: Shorter = ()
    apart: Season | None = None
    waves: Annotated[int, Field(strict=True, ge=1, le=MOST)] = FEW

    @property
    def seasons(self) -> tuple[int, ...]:
        """All of them, the shortest first."""
        return (*self.shorter, self.season)

    @property
    def name(self) -> str:
        """In words."""
        base = f"autoregression, {len(self.lags)} lags" if self.lags else "random walk"
        if not self.lags and self.seasonal_changes:
            base = "last season" + (f" of {self._apart} steps" if self.shorter else "")
        parts = [base]
        if self.lags and self.changes:
            parts.append("changes")
        if self.lags and self.seasonal_changes:
            over = f"over {self._apart} steps" if self.shorter else "from season to season"
            parts.append(f"changes {over}")
        if self.has_phases:
            fine = "every step of " if self.waves > FEW else ""
            parts.append(f"{fine}seasons" if self.shorter else "season")
        return ", ".join(parts)

    @property
    def _apart(self) -> int:
        return self.apart or self.season

    def adapted(self, values: Values) -> "Autoregression":
        """A copy that knows what these histories say, for shorter ones."""
        values = self._long_enough(evenly(values))
        products, known = self._products(self._scaled(values))
        return replace(
            self,
            learned=tuple(tuple(row) for row in products.mean(0).tolist()),
            count=float(known.mean()),
            steps=given(values),
        )

    def paths(self, values: Values, asked: Asked) -> Paths:
        """Sample paths, each from coefficients and noise that it has drawn.

        As many rows at once as memory allows.
        """
        per_row = max(1, values.shape[1]) * len(self._widths)
        parts = values.split(max(1, _BLOCK_VALUES // per_row))
        return Paths.concatenate([self._paths(part, asked) for part in parts], dim=2)

    def _paths(self, values: Values, asked: Asked) -> Paths:
        values = self._long_enough(values)
        first, unit, scaled = _centre(values), unit_of(values), self._scaled(values)
        coefficients, variance = self._drawn(scaled, asked)
        known = filled(scaled)[:, -self._reach :] if self._reach else scaled[:, :0]
        steps = self._ahead(known, coefficients, variance.sqrt(), asked)
        found = [torch.stack(part, -1) for part in zip(*steps, strict=True)]
        value, mean = (first[:, None] + unit[:, None] * one for one in found)
        of_paths = (unit**2 * variance.T).view(asked.draws, 1, -1, 1).expand_as(mean)
        return Paths(value, mean, of_paths, value[:0])

    def _long_enough(self, values: Values) -> Float64[Tensor, "rows padded"]:
        """Histories that have the steps before a value, missing if need be."""
        return pad(values, (max(0, self._reach + 1 - values.shape[1]), 0), value=math.nan)

    def _scaled(self, values: Values) -> Values:
        return (values - _centre(values).unsqueeze(1)) / unit_of(values).unsqueeze(1)

    @property
    def _polynomial(self) -> Float64[Tensor, "terms"]:
        """Of the backshift operator B: (1 − B) and (1 − Bᵐ), where differences are taken."""
        found = torch.ones(1, dtype=torch.float64)
        if self.changes:
            found = _product(found, torch.tensor([1.0, -1.0], dtype=torch.float64))
        if self.seasonal_changes:
            season = torch.zeros(self._apart + 1, dtype=torch.float64)
            season[0], season[-1] = 1.0, -1.0
            found = _product(found, season)
        return found

    @property
    def _reach(self) -> int:
        """Steps before a value that it depends on."""
        return len(self._polynomial) - 1 + max(self.lags, default=0)

    @property
    def _is_level(self) -> bool:
        return not (self.changes or self.seasonal_changes)

    def _differences(self, scaled: Values) -> Float64[Tensor, "rows differences"]:
        """w, with NaN where a value is missing."""
        terms = self._polynomial
        length = scaled.shape[1] - len(terms) + 1
        parts = [
            float(factor) * scaled[:, len(terms) - 1 - j :][:, :length]
            for j, factor in enumerate(terms)
            if factor
        ]
        return torch.stack(parts).sum(0)

    def _terms(self, w: Values) -> Float64[Tensor, "rows steps terms"]:
        """What each value of w is a linear function of; the phases count back from the end."""
        rows, steps = w.shape
        padded = torch.cat([torch.full((rows, max(self.lags, default=0)), torch.nan).to(w), w], 1)
        start = padded.shape[1] - steps
        parts = [padded[:, start - lag : padded.shape[1] - lag] for lag in self.lags]
        parts.append(torch.ones_like(w))
        terms = torch.stack(parts, -1)
        if self.has_phases:
            waves = self._phases(torch.arange(-steps, 0))
            terms = torch.cat([terms, waves.expand(rows, -1, -1)], -1)
        return terms

    def _phases(self, places: Int64[Tensor, "steps"]) -> Float64[Tensor, "steps waves"]:
        """The sines and cosines of these steps, those of the longest season last."""
        most = (*[FEW] * len(self.shorter), self.waves)
        each = zip(self.seasons, most, strict=True)
        return torch.cat([season_basis(one, count)[places % one] for one, count in each], 1)

    @property
    def _widths(self) -> Float64[Tensor, "terms"]:
        """Prior standard deviations. A lag near a season counts as its distance from that."""
        near = [
            min(lag, *(abs(lag - one) + 1 if 1 < one <= lag else lag for one in self.seasons))
            for lag in self.lags
        ]
        waves = self._phases(torch.arange(1)).shape[1] if self.has_phases else 0
        fine = max(0, min(self.season - 1, self.waves) - FEW) if self.has_phases else 0
        widths = [_LAG / distance**0.5 for distance in near]
        widths.append(_LEVEL if self._is_level else _DRIFT)
        return torch.tensor([*widths, *[_SEASON] * (waves - fine), *[_FINE] * fine]).double()

    def _drawn(
        self, scaled: Values, asked: Asked
    ) -> tuple[Coefficients, Float64[Tensor, "rows draws"]]:
        """Coefficients and σ² of each draw."""
        products, count = self._with_learned(scaled, *self._products(scaled))
        right = products[:, :-1, -1:]
        lower = torch.linalg.cholesky(products[:, :-1, :-1] + (self._widths**-2).diag())
        mean = torch.cholesky_solve(right, lower).squeeze(-1)
        left = products[:, -1, -1] - (mean * right.squeeze(-1)).sum(-1)
        total, freedom = noise_posterior(left, count)
        size = total / freedom
        noise = standard_normal(asked.seed, self.name, 0, asked.draws, 1 + mean.shape[1]).double()
        variance = size.unsqueeze(1) * inverse_chi_square(noise[:, 0], freedom.unsqueeze(1))
        normal = noise[:, 1:].T.expand(len(mean), -1, -1)
        spread = torch.linalg.solve_triangular(lower.mT, normal, upper=True).mT
        return mean.unsqueeze(1) + variance.sqrt().unsqueeze(-1) * spread, variance

    def _products(
        self, scaled: Values
    ) -> tuple[Float64[Tensor, "rows both both"], Float64[Tensor, "rows"]]:
        """Of terms and values, the values last, with the number of known values."""
        w = self._differences(scaled)
        both = torch.cat([self._terms(w), w.unsqueeze(-1)], -1)
        known = ~both.isnan().any(-1)
        both = torch.where(known.unsqueeze(-1), both, 0.0)
        return both.mT @ both, known.sum(1).double()

    def _with_learned(
        self,
        scaled: Values,
        products: Float64[Tensor, "rows both both"],
        count: Float64[Tensor, "rows"],
    ) -> tuple[Float64[Tensor, "rows both both"], Float64[Tensor, "rows"]]:
        """The same with what training found, for the steps that a history has fewer."""
        if not self.learned:
            return products, count
        share = missing_share(scaled, self.steps)
        learned = torch.tensor(self.learned, dtype=torch.float64)
        return products + share.view(-1, 1, 1) * learned, count + share * self.count

    def _ahead(
        self,
        known: Values,
        coefficients: Coefficients,
        deviation: Float64[Tensor, "rows draws"],
        asked: Asked,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Value and mean of each step ahead: [draws, paths, rows]."""
        weights = self._weights(coefficients)
        level, *waves = coefficients[..., len(self.lags) :].unbind(-1)
        places = torch.arange(asked.horizon)
        basis = self._phases(places) if self.has_phases else None
        shape = (asked.draws, asked.paths, *known.shape)
        past = known.expand(shape)
        largest = _LARGEST * (1 + float(known.abs().amax() if known.numel() else 0.0))
        for h in range(asked.horizon):
            asked.pause()
            constant = level
            if basis is not None:
                wave = basis[h]
                constant = level + sum(one * part for one, part in zip(waves, wave, strict=True))
            mean = constant.T.unsqueeze(1).expand(shape[:-1])
            if weights.shape[-1]:
                mean = mean + torch.einsum("skrj,rsj->skr", past, weights)
            normal = standard_normal(
                asked.seed, f"{self.name} step {h}", 0, asked.draws, asked.paths
            )
            mean = mean.clamp(-largest, largest)
            value = mean + deviation.T.unsqueeze(1) * normal.double().unsqueeze(-1)
            past = torch.cat([past[..., 1:], value.unsqueeze(-1)], -1) if past.shape[-1] else past
            yield value, mean

    def _weights(self, coefficients: Coefficients) -> Float64[Tensor, "rows draws reach"]:
        """The weight of each earlier value, the latest last: of the polynomials' product."""
        rows, draws, _ = coefficients.shape
        terms = self._polynomial
        found = torch.zeros(rows, draws, self._reach + 1, dtype=torch.float64)
        found[..., : len(terms)] = terms
        for k, lag in enumerate(self.lags):
            found[..., lag : lag + len(terms)] -= coefficients[..., k, None] * terms
        return -found[..., 1:].flip(-1)


def _product(
    one: Float64[Tensor, "terms"], other: Float64[Tensor, "others"]
) -> Float64[Tensor, "both"]:
    """Of two polynomials."""
    found = torch.zeros(len(one) + len(other) - 1, dtype=torch.float64)
    for k, factor in enumerate(one.tolist()):
        found[k : k + len(other)] += factor * other
    return found


def _centre(values: Values) -> Float64[Tensor, "rows"]:
    """The mean of each row's known values."""
    known = ~values.isnan()
    return values.nan_to_num(0.0).sum(1) / known.sum(1).clamp(min=1)
