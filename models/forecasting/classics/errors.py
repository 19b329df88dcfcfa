r"""The errors of a regression: an autoregression of their changes.

The changes w of u − Xβ from step to step follow

    w_t = c + s_{t mod m} + Σ_{i ∈ lags} φ_i w_{t−i} + e_t,      e_t ~ N(0, σ²)

Given φ, u and the columns of X are filtered alike, and what is left is an ordinary regression.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from models.forecasting.classics.member import Season, Values, filled, season_basis, unit_of
from models.forecasting.windows import StepCount

# Priors in units of the standard deviation of changes, as those of the autoregressions.
_LAG, _DRIFT, _SEASON = 0.5, 0.3, 3.0

Columns = Float64[Tensor, "rows steps columns"]
Filtered = Float64[Tensor, "rows filtered columns"]
Weights = Float64[Tensor, "rows lags"]


@dataclass(frozen=True)
class Errors:
    """
    Args:
        lags: that have a weight φ.
        season: steps of the season, each of which has a mean of its own; 1 for none.
    """

    lags: Annotated[tuple[StepCount, ...], Len(0, 64)]
    season: Season = 1

    @property
    def reach(self) -> int:
        """Steps before a value that it depends on."""
        return 1 + max(self.lags, default=0)

    @property
    def precisions(self) -> Float64[Tensor, "means"]:
        """Of the priors of c and s."""
        waves = season_basis(self.season).shape[1] if self.season > 1 else 0
        return torch.tensor([_DRIFT, *[_SEASON] * waves], dtype=torch.float64) ** -2

    def means(self, places: Int64[Tensor, "steps"]) -> Float64[Tensor, "steps means"]:
        """What c and s add to the changes at these places; the first step ahead is at 0."""
        ones = torch.ones(len(places), 1, dtype=torch.float64)
        if self.season == 1:
            return ones
        return torch.cat([ones, season_basis(self.season)[places % self.season]], 1)

    def counted(self, values: Values) -> Bool[Tensor, "rows filtered"]:
        """Which values are known, with all steps that they depend on in the history."""
        known = ~values.isnan()
        begun = known.int().cummax(1).values.bool()
        return known[:, self.reach :] & begun[:, : -self.reach]

    def weights(self, values: Values) -> Weights:
        """φ of each row, with normal priors that narrow with the lag: the posterior's mean."""
        if not self.lags:
            return values[:, :0]
        changes = (filled(values) / unit_of(values).unsqueeze(1)).diff(dim=1)
        start, stop = self.reach - 1, changes.shape[1]
        past = torch.stack([changes[:, start - lag : stop - lag] for lag in self.lags], -1)
        means = self.means(torch.arange(start - stop, 0)).expand(len(values), -1, -1)
        terms = torch.cat([past, means], -1) * self.counted(values).unsqueeze(-1)
        narrow = torch.tensor([self._distance(lag) for lag in self.lags]).double() / _LAG**2
        matrix = terms.mT @ terms + torch.cat([narrow, self.precisions]).diag()
        right = terms.mT @ changes[:, start:].unsqueeze(-1)
        return torch.linalg.solve(matrix, right)[:, : len(self.lags), 0]

    def filtered(self, columns: Columns, weights: Weights) -> Filtered:
        """w − Σ φ_i w_{t−i} of each column."""
        changes = columns.diff(dim=1)
        start, stop = self.reach - 1, changes.shape[1]
        found = changes[:, start:]
        for lag, weight in zip(self.lags, weights.unbind(1), strict=True):
            found = found - weight.view(-1, 1, 1) * changes[:, start - lag : stop - lag]
        return found

    def continued(
        self,
        columns: Columns,
        weights: Weights,
        of_means: Float64[Tensor, "rows means columns"],
        horizon: int,
    ) -> Float64[Tensor, "rows horizon columns"]:
        """The columns' own forecasts.

        Args:
            of_means: c and s of each column.
        """
        past = columns[:, -self.reach :].diff(dim=1)
        means = self.means(torch.arange(horizon)) @ of_means
        for h in range(horizon):
            change = means[:, h]
            for lag, weight in zip(self.lags, weights.unbind(1), strict=True):
                change = change + weight.unsqueeze(1) * past[:, past.shape[1] - lag]
            past = torch.cat([past, change.unsqueeze(1)], 1)
        return columns[:, -1:] + past[:, past.shape[1] - horizon :].cumsum(1)

    def _distance(self, lag: int) -> int:
        """From now; a lag near a season counts as its distance from that."""
        return lag if lag < self.season or self.season == 1 else abs(lag - self.season) + 1
