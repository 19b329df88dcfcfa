"""How many independent errors those of overlapping forecasts are worth.

The errors of a forecast's steps depend on each other, and so do those of forecasts whose steps
overlap. Errors of different series, and of forecasts that do not overlap, count as independent. N
errors or scores whose correlations are r are worth n = N² ÷ Σ r independent ones, summed over all
pairs: the variance s² Σ r ÷ N² of their mean is s² ÷ n.

*Errors* add up like those of a random walk: hardly any depend more. After h and k steps that share
m of them they have the correlation ρ = m ÷ √(h k). So many independent Gaussian errors tell as much
about a variance as n = N² ÷ Σ ρ²: the variance of a mean of N squared errors is 2 Σ ρ² ÷ N², and of
n independent ones 2 ÷ n.

*Scores* have r = θ^|t − t'| for the steps t and t'. θ is the correlation of neighbouring steps of
the same forecast, less its bias of −(1 + 4 θ) ÷ T for T distinct steps (Kendall 1954). They are
worth as much as random walks at least. A score grows with the size of its error, and sizes have
correlations of about ρ². The difference of two methods' scores changes its sign with the error: its
correlation is ρ, and θ counts as half of its standard error √((1 − θ²) ÷ T) larger, because few
steps seldom show how much they depend. The mean squared deviation of scores is s² (1 − 1 ÷ n) on
average, so the standard error of their mean is √(mean squared deviation ÷ (n − 1)), and mean ÷
error has Student's t with n − 1 degrees of freedom (as the test of Diebold and Mariano has with the
correction for small samples: Harvey, Leybourne and Newbold 1997).

*Series* differ in their scale, which the scores of a series share. From `MIN_SERIES` series on the
standard error therefore comes from the sums of whole series: √(G ÷ (G − 1) Σ_g d_g²) ÷ N with d_g
the sum of the deviations of series g (Cameron and Miller 2015, A practitioner's guide to
cluster-robust inference, eq. 11 for a mean). It has G − 1 degrees of freedom (there, §VI.D).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int

from models.evaluation.path_calibration import Worth

MIN_SERIES = 10

Scores = Float64[np.ndarray, "scores"]
Correlations = Callable[[int, int], Float64[np.ndarray, "first second"]]
"""Of the steps of two forecasts of a horizon, of which the second begins so many steps later."""


def walks(lag: int, horizon: int) -> Float64[np.ndarray, "first second"]:
    """ρ of a random walk: m ÷ √(h k)."""
    steps = np.arange(1, horizon + 1)
    shared = np.minimum.outer(steps - lag, steps).clip(0)
    return np.asarray(shared / np.sqrt(np.multiply.outer(steps, steps)), float)


def sums_of_walks(lag: int, horizon: int) -> Float64[np.ndarray, "first second"]:
    """ρ of the sums over the first 1, 2, … steps, which have the k-th shock before their end k
    times.
    """
    steps = np.arange(1.0, horizon + 1)
    shared = np.minimum.outer(steps - lag, steps).clip(0)
    apart = np.abs(np.subtract.outer(steps, steps + lag))
    together = shared * (shared + 1) * ((2 * shared + 1) / 6 + apart / 2)  # Σ k (k + apart)
    variances = steps * (steps + 1) * (2 * steps + 1) / 6
    return np.asarray(together / np.sqrt(np.multiply.outer(variances, variances)), float)


@dataclass(frozen=True)
class Overlaps:
    """Forecasts of which some overlap. Scores are of all steps, forecast after forecast.

    Args:
        series: the number of the series of each forecast.
        firsts: its first step.
        horizon: steps of a forecast.
    """

    series: Int[np.ndarray, "forecasts"]
    firsts: Int[np.ndarray, "forecasts"]
    horizon: int

    @cached_property
    def num_series(self) -> int:
        return len(np.unique(self.series))

    def worth(self, correlations: Correlations = walks, power: int = 2) -> Worth:
        """N² ÷ Σ r^power over all pairs of N errors: of all steps, and of each alone."""
        same = np.equal.outer(self.series, self.series)
        apart = np.abs(np.subtract.outer(self.firsts, self.firsts))[same]
        lags, counts = np.unique(apart[apart < self.horizon], return_counts=True)
        powers = (correlations(lag, self.horizon) ** power for lag in lags.tolist())
        found = counts @ np.array([[each.sum(), *np.diagonal(each)] for each in powers])
        together, count = found[0], len(self.firsts)
        alone = tuple((count**2 / found[1:]).tolist())
        return Worth(float((count * self.horizon) ** 2 / together), alone)

    @cached_property
    def _of_walks(self) -> dict[int, float]:
        """n by the power of the correlations."""
        return {power: self.worth(power=power).together for power in (1, 2)}

    def error_of_share(self, inside: Scores) -> float:
        """√(p̃ (1 − p̃) ÷ n) with p̃ = (n p + 2) ÷ (n + 4), as `evaluation.weighting`."""
        n = self._worth_of(inside, 2)
        near = (n * float(inside.mean()) + 2) / (n + 4)
        return math.sqrt(near * (1 - near) / n)

    def error_of_mean(self, values: Scores, power: int = 2) -> tuple[float | None, float]:
        """The standard error of the mean, None if it cannot be known; its degrees of freedom.

        Args:
            power: of ρ, with which scores are correlated; 1 for differences of two methods' scores.
        """
        if not np.isfinite(values).all():
            return None, 0.0
        deviations = values - values.mean()
        if self.num_series >= MIN_SERIES:
            sums = np.bincount(np.repeat(self.series, self.horizon), deviations)
            degrees = self.num_series - 1
            factor = self.num_series / degrees
            return math.sqrt(factor * float(np.square(sums).sum())) / len(values), degrees
        n = self._worth_of(values, power)
        if n <= 1 + 1e-9:  # a single error, but for rounding
            return None, 0.0
        return math.sqrt(float(np.square(deviations).mean()) / (n - 1)), n - 1

    def _worth_of(self, values: Scores, power: int) -> float:
        """n of scores that last as these do, or of random walks if that is more."""
        deviations = (values - values.mean()).reshape(-1, self.horizon)
        theta, square = 0.0, float(np.square(deviations).mean())
        if self.horizon > 1 and square > 0:
            autocorrelation = float((deviations[:, 1:] * deviations[:, :-1]).mean()) / square
            steps = self.firsts[:, None] + np.arange(self.horizon)
            each = zip(self.series.tolist(), steps.tolist(), strict=True)
            distinct = len({(one, t) for one, row in each for t in row})
            theta = float(np.clip(autocorrelation + (1 + 4 * autocorrelation) / distinct, 0, 1))
            if power == 1:
                theta = min(1.0, theta + 0.5 * math.sqrt((1 - theta**2) / distinct))

        def lasting(lag: int, horizon: int) -> Float64[np.ndarray, "first second"]:
            steps = np.arange(horizon)
            return np.asarray(theta ** np.abs(np.subtract.outer(steps, steps + lag)), float)

        return max(self._of_walks[power], self.worth(lasting, 1).together)
