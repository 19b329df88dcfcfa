"""Monotone scales of a number target: z = g(y), its inverse, and log g′(y) for densities of y.

A density on the scale becomes one of y by the Jacobian: log p(y) = log p(g(y)) + log g′(y).

The power transform of Yeo and Johnson (2000) makes skewed columns symmetric. With
z = (x − centre)/scale and exponent λ:

    ψ(z) = ((1 + z)^λ − 1)/λ for z ≥ 0,    ψ(z) = −((1 − z)^(2 − λ) − 1)/(2 − λ) for z < 0

An exponent of 0 means the logarithm. ψ is monotone and smooth.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from models.config.ranges import NotNegative, Number, Positive
from models.count_scale import CountScale
from models.features import weighted
from models.features.weighted import Weights

Numbers = Float[np.ndarray, "*shape"]
Shaped = Float[Tensor, "*shape"]
Powers = tuple[Float[Tensor, "*columns"], Float[Tensor, "*columns"]]

_SKEWED = 0.5  # |skewness| from which a distribution is usually called moderately skewed
_MIN_VALUES = 10  # distinct values; columns with fewer, such as codes, are not transformed
# Outside [0, 2] ψ is bounded on one side: values far outside the training data would then look like
# values at its edge.
_MIN_EXPONENT, _MAX_EXPONENT = 0.0, 2.0
LARGEST = 600.0  # of logarithms: e^600 is within float64, and so is its square's root
_LOGARITHM = 1e-300
_TINY = 1e-300  # the least distance from a bound
_GOLDEN = 0.5 * (5**0.5 - 1)
_MOST_VALUES = 20_000  # of which the exponent is fitted: its standard error is then below 0.02
_STEPS = 32  # of the golden-section search: the last bracket is 2 · 0.618³² = 4e-7 wide


@dataclass(frozen=True)
class PowerTransform:
    """ψ of values that are centred by their median and scaled by their quartiles.

    The transform therefore depends neither on the column's unit nor on a few extreme values.
    """

    centre: Number
    scale: Positive
    exponent: Annotated[float, Field(strict=True, ge=_MIN_EXPONENT, le=_MAX_EXPONENT)]

    @classmethod
    def fit(cls, values: Numbers, weights: Weights | None = None) -> Self | None:
        """Fit the exponent by maximum likelihood; return None if the column is not skewed.

        Args:
            values: training values without missing ones.
        """
        if len(np.unique(values)) <= _MIN_VALUES:
            return None
        centred = values - weighted.mean(values, weights)
        skewness = weighted.mean(centred**3, weights) / weighted.mean(centred**2, weights) ** 1.5
        if abs(skewness) <= _SKEWED:
            return None
        if len(values) > _MOST_VALUES:  # as many quantiles of them
            if weights is None:
                kept = np.linspace(0, len(values) - 1, _MOST_VALUES).round().astype(np.int64)
                values = np.sort(values)[kept]
            else:
                shares = np.linspace(0, 1, _MOST_VALUES).tolist()
                values, weights = weighted.quantile(values, shares, weights), None
        lower, centre, upper = weighted.quantile(values, [0.25, 0.5, 0.75], weights)
        # of a Gaussian 1.349 deviations
        scale = (upper - lower) / 1.349 or weighted.deviation(values, weights)
        z = (values - centre) / scale
        return cls(float(centre), float(scale), _most_likely_exponent(z, weights))


def yeo_johnson(z: Shaped, powers: Powers) -> Shaped:
    """Return ψ(z) = sign(z) ((1 + |z|)^p − 1)/p with p = λ or for z < 0 2 − λ; NaN stays NaN."""
    above, below = powers
    p = torch.where(z >= 0, above, below)
    return (p * z.abs().log1p()).expm1() / p * z.sign()


def inverse_yeo_johnson(u: Shaped, powers: Powers) -> Shaped:
    """Return z with ψ(z) = u; beyond the reach of ψ, the largest z that squares within float64."""
    above, below = powers
    p = torch.where(u >= 0, above, below)
    return ((p * u.abs()).log1p() / p).clamp(max=LARGEST).expm1() * u.sign()


def powers_of(exponent: Float[Tensor, "*columns"]) -> Powers:
    """λ and 2 − λ. For 0 they have a number so small that the power becomes the logarithm."""
    return exponent.clamp(min=_LOGARITHM), (2 - exponent).clamp(min=_LOGARITHM)


def _log_likelihood(z: Numbers, exponent: float, weights: Weights | None) -> float:
    """Mean log likelihood of a Gaussian fitted to ψ(z), up to a constant."""
    jacobian = (exponent - 1) * np.sign(z) * np.log1p(np.abs(z))
    powers = powers_of(torch.tensor(exponent, dtype=torch.float64))
    variance = weighted.variance(yeo_johnson(torch.from_numpy(z), powers).numpy(), weights)
    return weighted.mean(jacobian, weights) - 0.5 * float(np.log(variance))


def _most_likely_exponent(z: Numbers, weights: Weights | None) -> float:
    """Golden-section search; the likelihood has one maximum (Yeo and Johnson 2000, §4)."""
    low, high = _MIN_EXPONENT, _MAX_EXPONENT
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _log_likelihood(z, left, weights) < _log_likelihood(z, right, weights):
            low = left
        else:
            high = right
    return 0.5 * (low + high)


@dataclass(frozen=True)
class IdentityScale:
    """g(y) = y."""

    kind: Literal["identity"] = "identity"

    def __call__(self, y: Shaped) -> Shaped:
        return y

    def inverse(self, u: Shaped) -> Shaped:
        return u

    def log_derivative(self, y: Shaped) -> Shaped:
        return torch.zeros_like(y)


@dataclass(frozen=True)
class LogScale:
    """g(y) = log(y − lower + offset); with an offset above 0, y may be the lower bound."""

    lower: Number
    offset: NotNegative
    kind: Literal["log"] = "log"

    def __call__(self, y: Shaped) -> Shaped:
        return self._shifted(y).log()

    def inverse(self, u: Shaped) -> Shaped:
        return u.clamp(max=LARGEST).exp() + (self.lower - self.offset)

    def log_derivative(self, y: Shaped) -> Shaped:
        """−log(y − lower + offset)."""
        return -self._shifted(y).log()

    def _shifted(self, y: Shaped) -> Shaped:
        return (y - (self.lower - self.offset)).clamp(min=_TINY)


@dataclass(frozen=True)
class PowerScale(PowerTransform):
    """ψ((y − centre)/scale), the power transform."""

    kind: Literal["power"] = "power"

    def __call__(self, y: Shaped) -> Shaped:
        return yeo_johnson((y - self.centre) / self.scale, self._powers)

    def inverse(self, u: Shaped) -> Shaped:
        return self.centre + self.scale * inverse_yeo_johnson(u, self._powers)

    def log_derivative(self, y: Shaped) -> Shaped:
        """(λ − 1) sign(x) log(1 + |x|) − log scale."""
        x = (y - self.centre) / self.scale
        return (self.exponent - 1) * x.sign() * x.abs().log1p() - math.log(self.scale)

    @property
    def _powers(self) -> Powers:
        return powers_of(torch.tensor(self.exponent, dtype=torch.float64))


@dataclass(frozen=True)
class LogitScale:
    """g(y) = log((y − lower + offset)/(upper − y + offset)), for targets between two bounds."""

    lower: Number
    upper: Number
    offset: NotNegative
    kind: Literal["logit"] = "logit"

    def __call__(self, y: Shaped) -> Shaped:
        return self._below(y).log() - self._above(y).log()

    def inverse(self, u: Shaped) -> Shaped:
        width = self.upper - self.lower + 2 * self.offset
        return (self.lower - self.offset) + width * torch.sigmoid(u)

    def log_derivative(self, y: Shaped) -> Shaped:
        """log(1/(y − lower + offset) + 1/(upper − y + offset))."""
        return math.log(self.upper - self.lower + 2 * self.offset) - (
            self._below(y).log() + self._above(y).log()
        )

    def _below(self, y: Shaped) -> Shaped:
        return (y - (self.lower - self.offset)).clamp(min=_TINY)

    def _above(self, y: Shaped) -> Shaped:
        return ((self.upper + self.offset) - y).clamp(min=_TINY)


Scale = Annotated[
    IdentityScale | LogScale | PowerScale | LogitScale | CountScale, Field(discriminator="kind")
]
