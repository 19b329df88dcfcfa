"""What rows that no weight was fitted to say of predictions: how wide, and how certain, they are.

A variance scale or a temperature is one number, so that a few rows are enough to know it (Guo et
al. 2017, arXiv 1706.04599). Conformal intervals go further: whatever the model, they hold a new
row's target with the wanted probability (Vovk, Gammerman, Shafer 2005, §2.2; Lei et al. 2018,
arXiv 1604.04173, §5.2 for residuals in units of a predicted deviation).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
from annotated_types import Len
from jaxtyping import Float, Shaped
from torch import Tensor

from models.config import Json
from models.config.ranges import Count, NotNegative, Positive
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture

# log c and log T are N(0, ½²) a priori: two thirds of fits have a variance within a factor of 1.65.
# For a Gaussian's variance that weighs as much as eight rows (n rows determine log c with precision
# n/2); of 19 rows 30 % of log c are given up, of 199 rows 4 %, and of none all.
PENALTY_SCALE = 0.5
_BOUND = 10.0  # of |log c|: far beyond, a fit is no fit
_TOLERANCE = 1e-4  # of log c, a hundredth of its standard error from 20,000 rows
_GOLDEN = (math.sqrt(5) - 1) / 2

MAX_RESIDUALS = 9_999  # kept: 20 · 500 − 1, for which the usual levels are met exactly


@dataclass(frozen=True)
class Calibrating:
    """What is predicted of some rows, their targets in the target's units, and their weights."""

    mixture: Mixture
    targets: Shaped[Tensor, "rows"]
    weights: Float[Tensor, "rows"] | None

    def log_likelihood(self, mixture: Mixture) -> float:
        """Σ w_i log p(y_i); a row of weight 2 counts as two rows."""
        log_prob = mixture.log_prob(self.targets)
        return float((log_prob if self.weights is None else log_prob * self.weights).sum())


def conformal_rank(num_rows: int, level: float) -> int:
    """⌈(n + 1) · level⌉, 1 at the least.

    The so many-th smallest of n scores is not exceeded by that of a new, exchangeable row with a
    probability of `level` or more (Vovk et al. 2005, §2.2). It may be n + 1: there is none then.
    """
    return max(1, math.ceil((num_rows + 1) * level - 1e-9))  # 0.95 · 60 is no integer in floats


@dataclass(frozen=True)
class NumberCalibration:
    """A factor of all variances, and the residuals that conformal intervals reach to.

    `residuals` are |y − mean| ÷ the calibrated total standard deviation, in increasing order, of
    `rows` rows, or evenly spread order statistics of theirs.
    """

    variance_scale: Positive
    residuals: Annotated[tuple[NotNegative, ...], Len(0, MAX_RESIDUALS)]
    rows: Count

    def apply(self, mixture: Mixture) -> GaussianMixture:
        """All deviations about the mean times √c: shares and their decomposition stay."""
        assert isinstance(mixture, GaussianMixture)
        return mixture.scaled(self.variance_scale)

    def half_width(self, level: float) -> float:
        """In predictive standard deviations; infinite where too few rows were seen.

        The ⌈(n + 1) · level⌉-th smallest of n residuals. For rows exchangeable with the calibration
        rows an interval of this half width holds the target with a probability of `level` or more.
        """
        rank = conformal_rank(len(self.residuals), level)
        return self.residuals[rank - 1] if rank <= len(self.residuals) else math.inf

    def describe(self) -> Json:
        return {"variance_scale": self.variance_scale, "rows": self.rows}


@dataclass(frozen=True)
class ClassCalibration:
    """A temperature T of all logits: probabilities are as p^(1/T)."""

    temperature: Positive
    rows: Count

    def apply(self, mixture: Mixture) -> CategoricalMixture:
        assert isinstance(mixture, CategoricalMixture)
        return mixture.tempered(self.temperature)

    def describe(self) -> Json:
        return asdict(self)


Calibration = NumberCalibration | ClassCalibration


def fit_scale(seen: Sequence[Calibrating]) -> float:
    """The c or T under which the rows' targets are likeliest, drawn a little towards 1."""

    def log_posterior(log_scale: float) -> float:
        scale = math.exp(log_scale)
        fit = sum(one.log_likelihood(_scaled(one.mixture, scale)) for one in seen)
        return fit - 0.5 * (log_scale / PENALTY_SCALE) ** 2

    return math.exp(_maximum(log_posterior))


def _scaled(mixture: Mixture, scale: float) -> Mixture:
    if isinstance(mixture, GaussianMixture):
        return mixture.scaled(scale)
    return mixture.tempered(scale)


def _maximum(function: Callable[[float], float]) -> float:
    """By golden section; for one Gaussian, or one softmax, the function has a single maximum."""
    low, high = -_BOUND, _BOUND
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > _TOLERANCE:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)


def residuals(mixture: GaussianMixture, targets: Float[Tensor, "rows"]) -> Float[Tensor, "rows"]:
    """|y − mean| ÷ total standard deviation, of a calibrated mixture."""
    return (targets - mixture.mean()).abs() / mixture.total().sqrt()


def order_statistics(values: Float[Tensor, "rows"]) -> tuple[float, ...]:
    """The values in increasing order; of more than `MAX_RESIDUALS` as many, evenly spread.

    The k-th of the m that are kept is the ⌈k (n + 1) / (m + 1)⌉-th of all n: what is read as the
    quantile at any level is never below that of all.
    """
    ordered = np.sort(values.cpu().numpy())
    n, m = len(ordered), min(len(ordered), MAX_RESIDUALS)
    ranks = -(-np.arange(1, m + 1) * (n + 1) // (m + 1))
    return tuple(ordered[ranks - 1].tolist())
