"""Autoregressions with a posterior of their coefficients and noise.

The series, or its differences w from step to step and from season to season, follow

    w_t = c + s_{t mod m} + Σ_{i ∈ lags} φ_i w_{t−i} + e_t,      e_t ~ N(0, σ²)

with a further s for each further season m. The priors of φ_i are normal, and the narrower the
longer the lag (Litterman 1986), so many lags do no harm and stand in for moving averages. The
posterior of all coefficients and σ² is a `Regression`, computed anew for every history.
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
    DRIFT,
    FEW,
    LAG,
    LEVEL,
    PathRequest,
    Products,
    Regression,
    Season,
    Shorter,
    Values,
    evenly,
    filled,
    in_units,
    missing_share,
    num_known,
    season_basis,
    unit_of,
)
from models.forecasting.rollout import Paths
from models.forecasting.windows import StepCount
from models.inference.noise import standard_normal

_SEASON = 3.0  # prior deviations, in units of the standard deviation of changes
_FINE = 0.7  # of the waves of a season after the first 12
_LARGEST = 10.0  # of a path, in units of the history's size: what explodes is cut there

MOST = 256  # terms of a stored member
_BLOCK_VALUES = 2**23  # of all terms of the rows at once
Row = Annotated[tuple[Number, ...], Len(0, MOST)]

Coefficients = Float64[Tensor, "rows draws terms"]


@dataclass(frozen=True)
class Autoregression:
    """An autoregression.

    Args:
        lags: the lags that have a coefficient; none for a random walk.
        season: steps of the season, or of the longest; 1 for none.
        changes: whether it is of changes from step to step.
        seasonal_changes: whether it is of changes from season to season.
        apart: the season of these changes; None for the longest.
        waves: at most so many sines and cosines of the longest season; each shorter one has 12.
        has_phases: whether each step of a season has a mean of its own.
        learned: the `Products` of training, mean over histories.
        count: the mean number of known values in each.
        steps: the mean length of a training history.
        shorter: the steps of further seasons.
    """

    lags: Annotated[tuple[StepCount, ...], Len(0, 64)]
    season: Season = 1
    changes: Flag = False
    seasonal_changes: Flag = False
    has_phases: Flag = False
    learned: Annotated[tuple[Row, ...], Len(0, MOST)] = ()
    count: NotNegative = 0.0
    steps: Positive = 1.0
    shorter: Shorter = ()
    apart: Season | None = None
    waves: Annotated[int, Field(strict=True, ge=1, le=MOST)] = FEW

    @property
    def seasons(self) -> tuple[int, ...]:
        """All seasons, the shortest first."""
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
        """A copy that has learned from these histories what short ones lack."""
        values = self._long_enough(evenly(values))
        products, known = _products(self.terms(_scaled(values)))
        return replace(
            self,
            learned=tuple(tuple(row) for row in products.mean(0).tolist()),
            count=float(known.mean()),
            steps=float(num_known(values).mean()),
        )

    def paths(self, values: Values, asked: PathRequest) -> Paths:
        """Sample paths, each from coefficients and noise that it has drawn.

        Rows are computed as many at once as memory allows.
        """
        per_row = max(1, values.shape[1]) * len(self.widths)
        parts = values.split(max(1, _BLOCK_VALUES // per_row))
        return Paths.concatenate([self._paths(part, asked) for part in parts], dim=2)

    def _paths(self, values: Values, asked: PathRequest) -> Paths:
        values = self._long_enough(values)
        scaled = _scaled(values)
        products, count = _products(self.terms(scaled))
        if self.learned:
            share = missing_share(scaled, self.steps)
            learned = torch.tensor(self.learned, dtype=torch.float64)
            products, count = products + share.view(-1, 1, 1) * learned, count + share * self.count
        posterior = Regression.of(products.unsqueeze(1), count.unsqueeze(1), self.widths)
        width = 1 + len(self.widths)
        noise = standard_normal(asked.seed, self.name, 0, asked.draws, width).double()
        coefficients, variance = posterior.drawn(noise)
        known = filled(scaled)[:, -self.reach :] if self.reach else scaled[:, :0]
        steps = self._ahead(known, coefficients, variance.sqrt(), asked)
        return in_units(steps, _centre(values), unit_of(values), variance)

    def _long_enough(self, values: Values) -> Float64[Tensor, "rows padded"]:
        """Histories with at least `reach` + 1 steps: missing ones are put before the first."""
        return pad(values, (max(0, self.reach + 1 - values.shape[1]), 0), value=math.nan)

    @property
    def _polynomial(self) -> Float64[Tensor, "terms"]:
        """The coefficients of (1 − B) and (1 − Bᵐ), if differences are taken, in the backshift
        operator B.
        """
        polynomial = torch.ones(1, dtype=torch.float64)
        if self.changes:
            polynomial = pad(polynomial, (0, 1)) - pad(polynomial, (1, 0))
        if self.seasonal_changes:
            polynomial = pad(polynomial, (0, self._apart)) - pad(polynomial, (self._apart, 0))
        return polynomial

    @property
    def reach(self) -> int:
        """How many steps before a value it depends on."""
        return len(self._polynomial) - 1 + max(self.lags, default=0)

    def terms(self, values: Values) -> Float64[Tensor, "rows differences both"]:
        """The terms of each difference w, and last w itself; NaN where one is missing.

        Terms are the lags of w, 1, and the waves of the seasons, whose phase is counted back from
        the end.
        """
        polynomial, rows = self._polynomial, len(values)
        length = values.shape[1] - len(polynomial) + 1
        parts = [
            float(factor) * values[:, len(polynomial) - 1 - j :][:, :length]
            for j, factor in enumerate(polynomial)
            if factor
        ]
        w = torch.stack(parts).sum(0)
        lagged = [pad(w, (lag, 0), value=math.nan)[:, :length] for lag in self.lags]
        waves = self.waves_at(torch.arange(-length, 0)).expand(rows, -1, -1)
        return torch.cat([torch.stack([*lagged, torch.ones_like(w)], -1), waves, w[..., None]], -1)

    def waves_at(self, places: Int64[Tensor, "steps"]) -> Float64[Tensor, "steps waves"]:
        """The sines and cosines at these places. Those of the longest season are last."""
        if not self.has_phases:
            return torch.empty(len(places), 0, dtype=torch.float64)
        most = (*[FEW] * len(self.shorter), self.waves)
        each = zip(self.seasons, most, strict=True)
        return torch.cat(
            [season_basis(period, count)[places % period] for period, count in each], 1
        )

    @property
    def widths(self) -> Float64[Tensor, "terms"]:
        """Prior standard deviations. A lag just after a season counts as its distance from it."""
        near = [
            min(
                lag,
                *(abs(lag - season) + 1 if 1 < season <= lag else lag for season in self.seasons),
            )
            for lag in self.lags
        ]
        waves = self.waves_at(torch.arange(1)).shape[1]
        fine = max(0, min(self.season - 1, self.waves) - FEW) if self.has_phases else 0
        widths = [LAG / distance**0.5 for distance in near]
        widths.append(DRIFT if self.changes or self.seasonal_changes else LEVEL)
        return torch.tensor([*widths, *[_SEASON] * (waves - fine), *[_FINE] * fine]).double()

    def _ahead(
        self,
        known: Values,
        coefficients: Coefficients,
        deviation: Float64[Tensor, "rows draws"],
        asked: PathRequest,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Value and mean of each step ahead: [draws, paths, rows]."""
        weights = self._weights(coefficients)
        basis = pad(self.waves_at(torch.arange(asked.horizon)), (1, 0), value=1.0)
        constants = coefficients[..., len(self.lags) :] @ basis.T
        shape = (asked.draws, asked.paths, *known.shape)
        past = known.expand(shape)
        largest = _LARGEST * (1 + float(known.abs().amax() if known.numel() else 0.0))
        for h in range(asked.horizon):
            asked.pause()
            mean = constants[..., h].T.unsqueeze(1).expand(shape[:-1])
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
        """The weight of each earlier value in the next one, the latest last."""
        polynomial = self._polynomial
        weights = torch.zeros(*coefficients.shape[:2], self.reach + 1, dtype=torch.float64)
        weights[..., : len(polynomial)] = polynomial
        for k, lag in enumerate(self.lags):
            weights[..., lag : lag + len(polynomial)] -= coefficients[..., k, None] * polynomial
        return -weights[..., 1:].flip(-1)


def _products(
    terms: Float64[Tensor, "rows differences both"],
) -> tuple[Products, Float64[Tensor, "rows"]]:
    """Products over the steps whose terms are all known, and the number of these."""
    known = ~terms.isnan().any(-1)
    terms = torch.where(known.unsqueeze(-1), terms, 0.0)
    return terms.mT @ terms, known.sum(1).double()


def _scaled(values: Values) -> Values:
    return (values - _centre(values).unsqueeze(1)) / unit_of(values).unsqueeze(1)


def _centre(values: Values) -> Float64[Tensor, "rows"]:
    """The mean of each row's known values; 0 without any."""
    return values.nanmean(1).nan_to_num(0.0)
