"""Monotone scales of a number target: z = g(y), its inverse, and log g′(y) for densities of y.

A density on the scale becomes one of y by the Jacobian: log p(y) = log p(g(y)) + log g′(y).
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from models.config.ranges import NotNegative, Number, Positive
from models.count_scale import CountScale
from models.features.power import LARGEST, Powers, inverse_yeo_johnson, powers_of, yeo_johnson

Values = Float[Tensor, "*shape"]

_TINY = 1e-300


@dataclass(frozen=True)
class IdentityScale:
    """g(y) = y."""

    kind: Literal["identity"] = "identity"

    def __call__(self, y: Values) -> Values:
        return y

    def inverse(self, u: Values) -> Values:
        return u

    def log_derivative(self, y: Values) -> Values:
        return torch.zeros_like(y)


@dataclass(frozen=True)
class LogScale:
    """g(y) = log(y − lower + offset); with an offset above 0, y may be the lower bound."""

    lower: Number
    offset: NotNegative
    kind: Literal["log"] = "log"

    def __call__(self, y: Values) -> Values:
        return self._shifted(y).log()

    def inverse(self, u: Values) -> Values:
        return u.clamp(max=LARGEST).exp() + (self.lower - self.offset)

    def log_derivative(self, y: Values) -> Values:
        """−log(y − lower + offset)."""
        return -self._shifted(y).log()

    def _shifted(self, y: Values) -> Values:
        return (y - (self.lower - self.offset)).clamp(min=_TINY)


@dataclass(frozen=True)
class PowerScale:
    """ψ((y − centre)/scale), the power transform of Yeo and Johnson (`models.features.power`)."""

    centre: Number
    scale: Positive
    exponent: Annotated[float, Field(strict=True, ge=0, le=2)]
    kind: Literal["power"] = "power"

    def __call__(self, y: Values) -> Values:
        return yeo_johnson((y - self.centre) / self.scale, self._powers)

    def inverse(self, u: Values) -> Values:
        return self.centre + self.scale * inverse_yeo_johnson(u, self._powers)

    def log_derivative(self, y: Values) -> Values:
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

    def __call__(self, y: Values) -> Values:
        return self._below(y).log() - self._above(y).log()

    def inverse(self, u: Values) -> Values:
        width = self.upper - self.lower + 2 * self.offset
        return (self.lower - self.offset) + width * torch.sigmoid(u)

    def log_derivative(self, y: Values) -> Values:
        """log(1/(y − lower + offset) + 1/(upper − y + offset))."""
        return math.log(self.upper - self.lower + 2 * self.offset) - (
            self._below(y).log() + self._above(y).log()
        )

    def _below(self, y: Values) -> Values:
        return (y - (self.lower - self.offset)).clamp(min=_TINY)

    def _above(self, y: Values) -> Values:
        return ((self.upper + self.offset) - y).clamp(min=_TINY)


Scale = Annotated[
    IdentityScale | LogScale | PowerScale | LogitScale | CountScale, Field(discriminator="kind")
]
