"""The power transform of Yeo and Johnson (2000), which makes skewed columns symmetric.

With z = (x − centre)/scale and exponent λ:

    ψ(z) = ((1 + z)^λ − 1)/λ for z ≥ 0,    ψ(z) = −((1 − z)^(2 − λ) − 1)/(2 − λ) for z < 0

An exponent of 0 means the logarithm. ψ is monotone and smooth.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from models.config.ranges import Number, Positive
from models.features import moments
from models.features.moments import Weights

Values = Float[np.ndarray, "*shape"]
Shaped = Float[Tensor, "*shape"]
Powers = tuple[Float[Tensor, "*columns"], Float[Tensor, "*columns"]]
Kept = Float[np.ndarray, "kept"]

_SKEWED = 0.5  # |skewness| from which a distribution is usually called moderately skewed
_MIN_VALUES = 10  # distinct values; columns with fewer, such as codes, are not transformed
# Outside [0, 2] ψ is bounded on one side: values far outside the training data would then look like
# values at its edge.
_MIN_EXPONENT, _MAX_EXPONENT = 0.0, 2.0
LARGEST = 600.0  # of logarithms: e^600 is within float64, and so is its square's root
_LOGARITHM = 1e-300
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
    def fit(cls, values: Values, weights: Weights | None = None) -> "PowerTransform | None":
        """Fit the exponent by maximum likelihood; return None if the column is not skewed.

        Args:
            values: training values without missing ones.
        """
        if len(np.unique(values)) <= _MIN_VALUES or abs(_skewness(values, weights)) <= _SKEWED:
            return None
        if len(values) > _MOST_VALUES:  # as many quantiles of them
            values, weights = _some(values, weights)
        lower, centre, upper = moments.quantile(values, [0.25, 0.5, 0.75], weights)
        # of a Gaussian 1.349 deviations
        scale = (upper - lower) / 1.349 or moments.deviation(values, weights)
        z = (values - centre) / scale
        return cls(float(centre), float(scale), _most_likely_exponent(z, weights))


def _some(values: Values, weights: Weights | None) -> tuple[Kept, Kept | None]:
    if weights is not None:
        return moments.quantile(values, np.linspace(0, 1, _MOST_VALUES).tolist(), weights), None
    kept = np.linspace(0, len(values) - 1, _MOST_VALUES).round().astype(np.int64)
    return np.sort(values)[kept], None


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


def _skewness(values: Values, weights: Weights | None) -> float:
    centred = values - moments.mean(values, weights)
    return moments.mean(centred**3, weights) / moments.mean(centred**2, weights) ** 1.5


def _log_likelihood(z: Values, exponent: float, weights: Weights | None) -> float:
    """Mean log likelihood of a Gaussian fitted to ψ(z), up to a constant."""
    jacobian = (exponent - 1) * np.sign(z) * np.log1p(np.abs(z))
    powers = powers_of(torch.tensor(exponent, dtype=torch.float64))
    variance = moments.variance(yeo_johnson(torch.from_numpy(z), powers).numpy(), weights)
    return moments.mean(jacobian, weights) - 0.5 * float(np.log(variance))


def _most_likely_exponent(z: Values, weights: Weights | None) -> float:
    """Golden-section search; the likelihood has one maximum (Yeo and Johnson 2000, §4)."""
    low, high = _MIN_EXPONENT, _MAX_EXPONENT
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _log_likelihood(z, left, weights) < _log_likelihood(z, right, weights):
            low = left
        else:
            high = right
    return 0.5 * (low + high)
