"""Standard errors of mean scores of forecasts, whose steps and overlapping origins are dependent.

The mean of N scores with the variance s² and correlations r has the variance s² Σ r ÷ N² = s² ÷ n.
Their mean squared deviation is s² (1 − 1 ÷ n) on average, which gives √(mean squared deviation ÷
(n − 1)) as the error. Scores of series, and of forecasts that do not overlap, count as independent.
Others have r = θ^|t − t'| for the steps t and t', with θ from neighbouring steps of the same
forecast: their correlation, less its bias of −(1 + 4 θ) ÷ T for T distinct steps (Kendall 1954).

n is at least what it is if errors add up like those of a random walk, with correlations ρ: hardly
any depend more. A score grows with the size of its error, and sizes have correlations of about ρ²:
n = N² ÷ Σ ρ². The difference of two methods' scores changes its sign with the error: n = N² ÷ Σ ρ.

Series differ in their scale, which the scores of a series share. From `MIN_SERIES` series on the
error therefore comes from the sums of whole series: √(G ÷ (G − 1) Σ_g d_g²) ÷ N with d_g the sum of
the deviations of series g (Cameron and Miller 2015, A practitioner's guide to cluster-robust
inference, eq. 11 for a mean).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from models.config import Json
from models.evaluation.metrics import COVERAGE_LEVELS
from models.evaluation.path_calibration import overlaps, worth_of

MIN_SERIES = 10
MEANS = ("log_likelihood", "mae", "mase", "crps", "scaled_crps")

Scores = Float64[np.ndarray, "errors"]


@dataclass(frozen=True)
class Dependence:
    """Which scores of forecasts depend on each other; the steps of each are consecutive.

    Args:
        series: the number of the series of each forecast.
        firsts: its first step.
        horizon: steps of a forecast.
    """

    series: Int[np.ndarray, "origins"]
    firsts: Int[np.ndarray, "origins"]
    horizon: int

    @classmethod
    def of(cls, keys: Sequence[str], firsts: Sequence[int], horizon: int) -> "Dependence":
        """Of forecasts of the series with these keys, from these first steps."""
        _, series = np.unique(np.array(keys), return_inverse=True)
        return cls(series, np.array(firsts), horizon)

    @cached_property
    def num_series(self) -> int:
        return len(np.unique(self.series))

    @cached_property
    def worth(self) -> float:
        """The number of independent errors that tell as much about their size."""
        return worth_of(self.series, self.firsts, self.horizon).together

    def of_scores(self, scores: Scores) -> float | None:
        """The standard error of the mean of scores; None if it cannot be known."""
        return self._of_mean(scores, self.worth)

    def of_differences(self, differences: Scores) -> float | None:
        """The standard error of the mean difference of two methods' scores."""
        least = worth_of(self.series, self.firsts, self.horizon, power=1).together
        return self._of_mean(differences, least)

    def of_share(self, inside: Scores) -> float:
        """√(p̃ (1 − p̃) ÷ n) with p̃ = (n p + 2) ÷ (n + 4), as `evaluation.weighting`."""
        n = max(self.worth, self._worth_of(inside))
        near = (n * float(inside.mean()) + 2) / (n + 4)
        return math.sqrt(near * (1 - near) / n)

    def _of_mean(self, values: Scores, least: float) -> float | None:
        """
        Args:
            least: n if errors are those of a random walk.
        """
        if not np.isfinite(values).all():
            return None
        deviations = values - values.mean()
        if self.num_series >= MIN_SERIES:
            return self._of_clusters(deviations)
        n = max(least, self._worth_of(values))
        if n <= 1 + 1e-9:  # a single error, but for rounding
            return None
        return math.sqrt(float(np.square(deviations).mean()) / (n - 1))

    def _of_clusters(self, deviations: Scores) -> float:
        sums = np.bincount(np.repeat(self.series, self.horizon), deviations)
        count = self.num_series
        return math.sqrt(count / (count - 1) * float(np.square(sums).sum())) / len(deviations)

    def _worth_of(self, values: Scores) -> float:
        """n for r = θ^|t − t'|: as many pairs of steps as differ by each number of steps."""
        theta = self._persistence(values)
        lags, counts = overlaps(self.series, self.firsts, self.horizon)
        behind = np.arange(1 - self.horizon, self.horizon)
        pairs = self.horizon - np.abs(behind)
        each = (pairs * theta ** np.abs(lags[:, None] + behind)).sum(1)
        return float(len(values) ** 2 / np.dot(counts, each))

    def _persistence(self, values: Scores) -> float:
        """θ, from 0 to 1: how much of a score's deviation the next step of a forecast shares."""
        deviations = (values - values.mean()).reshape(-1, self.horizon)
        square = float(np.square(deviations).mean())
        if self.horizon == 1 or not square > 0:
            return 0.0
        found = float((deviations[:, 1:] * deviations[:, :-1]).mean()) / square
        return float(np.clip(found + (1 + 4 * found) / self._num_steps, 0, 1))

    @cached_property
    def _num_steps(self) -> int:
        steps = self.firsts[:, None] + np.arange(self.horizon)
        return len({(s, t) for s, row in zip(self.series, steps, strict=True) for t in row})


def standard_errors(scores: Mapping[str, Float[Tensor, "errors"]], dependence: Dependence) -> Json:
    """The errors of the means of `regression_metrics`, under the same names."""
    found = {name: values.detach().cpu().double().numpy() for name, values in scores.items()}
    errors: Json = {name: dependence.of_scores(found[name]) for name in MEANS if name in found}
    for public in ("coverage", "conformal_coverage"):
        names = [(f"{level:g}", f"{public}_{level:g}") for level in COVERAGE_LEVELS]
        if names[0][1] in found:
            errors[public] = {level: dependence.of_share(found[name]) for level, name in names}
    return errors


Verdict = Literal["better", "no difference", "worse"]
PerStep = Float[Tensor, "steps"]
_SURE = 2  # standard errors


def advantage(
    own: Mapping[str, PerStep], theirs: Mapping[str, PerStep], dependence: Dependence
) -> Json:
    """By how much this model's CRPS is lower per step, its standard error, and a verdict on it.

    Nothing if a score is not finite. The steps of each forecast are consecutive.
    """
    differences = theirs["crps"].cpu().double() - own["crps"].cpu().double()
    if not bool(torch.isfinite(differences).all()):
        return {}
    difference, error = float(differences.mean()), dependence.of_differences(differences.numpy())
    return {
        "advantage": difference,
        "advantage_error": error,
        "verdict": verdict(difference, error),
    }


def verdict(difference: float, error: float | None) -> Verdict:
    """Whether this model is better or worse by more than two standard errors."""
    if error is None or abs(difference) <= _SURE * error:
        return "no difference"
    return "better" if difference > 0 else "worse"
