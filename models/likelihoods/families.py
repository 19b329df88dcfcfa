"""Symmetric location-scale families, of the standardised distance t = (z − loc)/scale.

Each has its log density, density, distribution function F with and without the density, P(T > t)
with all digits of small probabilities, log F, the shortfall E(t − T)⁺ = ∫ F up to t, a t above
which there is at most some probability (`tail_bound`), and log P(low < T < high) in a stable form.
`reach` is the |t| beyond which the probability is below 1e-15. Everything is differentiable.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus
from torch.special import erfcx, log_ndtr, ndtri

Values = Float[Tensor, "..."]  # of shapes that broadcast
Open = Bool[Tensor, "..."]

# Below this width the probability of an interval is density × width: the relative error is
# width² |f''/f|/24, and a difference of distribution functions would lose more digits.
_NARROW = 0.02
_LOG_NARROW = math.log(_NARROW)
_FAR = -10.0  # t, down to which float32 keeps 5 digits of t²/2 + log Φ(t)
_LOG_2PI = math.log(2 * math.pi)


def log1mexp(d: Values) -> Values:
    """log(1 − e^−d) for d > 0, without cancellation."""
    small = d < math.log(2)
    return torch.where(
        small,
        torch.log(-torch.expm1(-torch.where(small, d, 1.0))),
        torch.log1p(-torch.exp(-torch.where(small, 1.0, d))),
    )


def log1mexp_of_log(log_d: Values) -> Values:
    """log(1 − e^−d), given log d: by the series of small d, which may be 0 as a float."""
    tiny = log_d < _LOG_NARROW
    d = log_d.clamp(max=_LOG_NARROW).exp()
    series = log_d - 0.5 * d + d.square() / 24  # the error is d⁴/2880
    return torch.where(tiny, series, log1mexp(torch.where(tiny, 1.0, log_d).exp()))


@dataclass(frozen=True)
class Logistic:
    """f(t) = e^−t / (1 + e^−t)²."""

    reach: ClassVar[float] = 36.0
    variance: ClassVar[float] = math.pi**2 / 3

    def log_prob(self, t: Values) -> Values:
        size = t.abs()
        return -size - 2 * softplus(-size)

    def density(self, t: Values) -> Values:
        return self.cdf_and_density(t)[1]

    def cdf(self, t: Values) -> Values:
        return torch.sigmoid(t)

    def cdf_and_density(self, t: Values) -> tuple[Values, Values]:
        below = torch.sigmoid(t)
        return below, below * (1 - below)

    def survival(self, t: Values) -> Values:
        return torch.sigmoid(-t)

    def log_cdf(self, t: Values) -> Values:
        return logsigmoid(t)

    def shortfall(self, t: Values) -> Values:
        return softplus(t)

    def tail_bound(self, tail: Values) -> Values:
        return -torch.logit(tail)

    def log_interval(
        self, low: Values, high: Values, log_width: Values, open_low: Open, open_high: Open
    ) -> Values:
        """log σ(high) + log σ(−low) + log(1 − e^(low − high)), which is exact.

        Args:
            log_width: log(high − low). As a difference it has no digits left where the ends are far
                from 0 and close together: of whole numbers such as prices both are the same float.
            open_low, open_high: where the end counts as infinite, whatever its value.
        """
        zero = high.new_zeros(())
        inner = torch.where(open_low | open_high, zero, log1mexp_of_log(log_width))
        return (
            torch.where(open_high, zero, logsigmoid(high))
            + torch.where(open_low, zero, logsigmoid(-low))
            + inner
        )


@dataclass(frozen=True)
class Normal:
    """f(t) = e^(−t²/2)/√(2π)."""

    reach: ClassVar[float] = 8.5
    variance: ClassVar[float] = 1.0

    def log_prob(self, t: Values) -> Values:
        return -0.5 * (t.square() + _LOG_2PI)

    def density(self, t: Values) -> Values:
        return torch.exp(-0.5 * t.square()) * (2 * math.pi) ** -0.5

    def cdf(self, t: Values) -> Values:
        """Φ(t); of an exported graph in float32, because ONNX has no erf of float64."""
        if torch.compiler.is_exporting():
            return 0.5 + 0.5 * torch.erf(t.float() * math.sqrt(0.5)).to(t.dtype)
        return 0.5 + 0.5 * torch.erf(t * math.sqrt(0.5))

    def cdf_and_density(self, t: Values) -> tuple[Values, Values]:
        return self.cdf(t), self.density(t)

    def survival(self, t: Values) -> Values:
        return 0.5 * torch.erfc(t * math.sqrt(0.5))

    def log_cdf(self, t: Values) -> Values:
        """log Φ(t); far below 0 not torch's, whose gradient exp(−t²/2 − log Φ(t)) overflows."""
        far = t < _FAR
        below, above = torch.where(far, t, _FAR), torch.where(far, _FAR, t)
        tail = (0.5 * erfcx(below * -math.sqrt(0.5))).log() - 0.5 * below.square()
        return torch.where(far, tail, log_ndtr(above))

    def shortfall(self, t: Values) -> Values:
        return (t * self.cdf(t) + self.density(t)).clamp(min=0)

    def tail_bound(self, tail: Values) -> Values:
        return -ndtri(tail)

    def log_interval(
        self, low: Values, high: Values, log_width: Values, open_low: Open, open_high: Open
    ) -> Values:
        """As `Logistic.log_interval`; both ends are moved below 0, where Φ has its digits."""
        closed_low, closed_high = (
            torch.where(open_low, high - 1, low),
            torch.where(open_high, low + 1, high),
        )
        log_width = torch.where(open_low | open_high, 0.0, log_width)
        middle = 0.5 * (closed_low + closed_high)
        # An interval around 0 has its upper end above 0: digits are lost only of large numbers.
        top = torch.where(middle > 0, -closed_low, closed_high)
        width = log_width.clamp(min=_LOG_NARROW).exp()
        upper = self.log_cdf(top)
        # The slope of log Φ(t) is above −t, and far from 0 all that is left of the digits.
        least = width * top.neg().clamp(min=0)
        exact = upper + log1mexp(torch.maximum(upper - self.log_cdf(top - width), least))
        inside = torch.where(log_width < _LOG_NARROW, self.log_prob(middle) + log_width, exact)
        only_high, only_low = self.log_cdf(high), self.log_cdf(-low)
        return torch.where(
            open_low,
            torch.where(open_high, torch.zeros_like(inside), only_high),
            torch.where(open_high, only_low, inside),
        )


Family = Logistic | Normal
FamilyName = Literal["normal", "logistic"]
FAMILIES: Mapping[FamilyName, Family] = {"normal": Normal(), "logistic": Logistic()}
