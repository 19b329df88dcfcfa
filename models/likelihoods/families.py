"""Location-scale families, of the standardised distance t = (z − loc)/scale.

Each has log density, distribution function, the logarithm of P(low < T < high) in a stable form,
and its variance. Everything is differentiable.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus
from torch.special import erfcx, log_ndtr, ndtri

from models.likelihoods.incomplete_beta import student_survival

Values = Float[Tensor, "..."]  # of shapes that broadcast
Open = Bool[Tensor, "..."]
Index = Int[Tensor, "some"] | slice

# Below this width the probability of an interval is density × width: the relative error is
# width² |f''/f|/24, and a difference of distribution functions would lose more digits.
_NARROW = 0.02
_LOG_NARROW = math.log(_NARROW)
_FAR = -10.0  # t, down to which float32 keeps 5 digits of t²/2 + log Φ(t)
_NODES = 32  # of the quadrature of Student's distribution function; its error is below 1e-7
_LOG_2PI = math.log(2 * math.pi)


@runtime_checkable
class Family(Protocol):
    """A symmetric distribution of t.

    Args:
        reach: |t| beyond which the probability is below 1e-15, or very small for heavy tails.
    """

    @property
    def reach(self) -> float: ...

    @property
    def variance(self) -> Tensor | float: ...

    def log_prob(self, t: Values) -> Values: ...

    def density(self, t: Values) -> Values: ...

    def cdf(self, t: Values) -> Values: ...

    def cdf_and_density(self, t: Values) -> tuple[Values, Values]: ...

    def survival(self, t: Values) -> Values:
        """P(T > t), with all digits of small probabilities."""
        ...

    def log_cdf(self, t: Values) -> Values: ...

    def shortfall(self, t: Values) -> Values:
        """E(t − T)⁺, the integral of the distribution function up to t."""
        ...

    def separated(self, samples: int, rows: int) -> "Family":
        """The family of the first sample's rows, then of the second's, …: one sample of them."""
        ...

    def of_samples(self, samples: Index) -> "Family":
        """The family of some samples, by their numbers."""
        ...

    def of_rows(self, rows: Index) -> "Family":
        """The family of some rows, by their numbers."""
        ...

    def tail_bound(self, tail: Values) -> Values:
        """A t above which there is at most the probability `tail`."""
        ...

    def log_interval(
        self, low: Values, high: Values, log_width: Values, open_low: Open, open_high: Open
    ) -> Values:
        """log P(low < T < high); an open end counts as infinite, whatever its value.

        Args:
            log_width: log(high − low). As a difference it has no digits left where the ends are far
                from 0 and close together: of whole numbers such as prices both are the same float.
        """
        ...


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
        below = torch.sigmoid(t)
        return below * (1 - below)

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

    def separated(self, samples: int, rows: int) -> "Logistic":
        return self

    def of_samples(self, samples: Index) -> "Logistic":
        return self

    def of_rows(self, rows: Index) -> "Logistic":
        return self

    def tail_bound(self, tail: Values) -> Values:
        return -torch.logit(tail)

    def log_interval(
        self, low: Values, high: Values, log_width: Values, open_low: Open, open_high: Open
    ) -> Values:
        """log σ(high) + log σ(−low) + log(1 − e^(low − high)), which is exact."""
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

    def separated(self, samples: int, rows: int) -> "Normal":
        return self

    def of_samples(self, samples: Index) -> "Normal":
        return self

    def of_rows(self, rows: Index) -> "Normal":
        return self

    def tail_bound(self, tail: Values) -> Values:
        return -ndtri(tail)

    def log_interval(
        self, low: Values, high: Values, log_width: Values, open_low: Open, open_high: Open
    ) -> Values:
        def between(low: Values, high: Values, width: Values) -> Values:
            """Both ends below 0, where the slope of log Φ(t) is above −t."""
            upper = self.log_cdf(high)
            least = width * high.neg().clamp(min=0)  # all that is left of digits far from 0
            return upper + log1mexp(torch.maximum(upper - self.log_cdf(low), least))

        return _log_interval(self, between, low, high, log_width, open_low, open_high)


@dataclass(frozen=True)
class Student:
    """f(t) ∝ (1 + t²/ν)^(−(ν + 1)/2), ν = `dof` > 2.

    With φ = arctan(t/√ν) the distribution function is an integral of cos^(ν − 1), whose integrand
    is smooth: Gauss–Legendre, over the tail itself, so that small probabilities keep their digits.
    """

    reach: ClassVar[float] = 1e5
    dof: Float[Tensor, "*point"]

    @property
    def variance(self) -> Tensor:
        return self.dof / (self.dof - 2)

    @property
    def _log_constant(self) -> Tensor:
        """log of B(½, ν/2)."""
        half = 0.5 * self.dof
        return 0.5 * math.log(math.pi) + _log_gamma(half) - _log_gamma(half + 0.5)

    def log_prob(self, t: Values) -> Values:
        power = -0.5 * (self.dof + 1) * torch.log1p(t.square() / self.dof)
        return power - self._log_constant - 0.5 * self.dof.log()

    def density(self, t: Values) -> Values:
        return self.log_prob(t).exp()

    def cdf(self, t: Values) -> Values:
        tail = self._tail(t.abs())
        return torch.where(t > 0, 1 - tail, tail)

    def survival(self, t: Values) -> Values:
        return student_survival(t, self.dof)

    def log_cdf(self, t: Values) -> Values:
        return self.cdf(t).clamp(min=torch.finfo(t.dtype).tiny).log()

    def shortfall(self, t: Values) -> Values:
        """t F(t) + (ν + t²)/(ν − 1) f(t)."""
        weight = (self.dof + t.square()) / (self.dof - 1)
        return (t * self.cdf(t) + weight * self.density(t)).clamp(min=0)

    def cdf_and_density(self, t: Values) -> tuple[Values, Values]:
        return self.cdf(t), self.density(t)

    def separated(self, samples: int, rows: int) -> "Student":
        return Student(_in_a_row(self.dof, samples, rows))

    def of_samples(self, samples: Index) -> "Student":
        return Student(_of_samples(self.dof, samples))

    def of_rows(self, rows: Index) -> "Student":
        return Student(_of_rows(self.dof, rows))

    def tail_bound(self, tail: Values) -> Values:
        """Chebyshev: P(T > t) ≤ variance/(2t²)."""
        return (0.5 * torch.as_tensor(self.variance).max() / tail).sqrt()

    def log_interval(
        self, low: Values, high: Values, log_width: Values, open_low: Open, open_high: Open
    ) -> Values:
        def between(low: Values, high: Values, width: Values) -> Values:
            """Both ends below 0."""
            mass = self.cdf(high) - self.cdf(low)
            return mass.clamp(min=torch.finfo(mass.dtype).tiny).log()

        return _log_interval(self, between, low, high, log_width, open_low, open_high)

    def _tail(self, t: Values) -> Values:
        """P(T > t) for t ≥ 0."""
        root, power = self.dof.sqrt(), self.dof - 1
        near = t < root
        inner = torch.atan(torch.where(near, t, root) / root)
        outer = torch.atan(root / torch.where(near, root, t))
        body, tail = torch.zeros_like(inner), torch.zeros_like(outer)
        for node, weight in _legendre():
            body = body + weight * torch.cos(inner * node) ** power
            tail = tail + weight * torch.sin(outer * node) ** power
        scale = torch.exp(-self._log_constant)
        return torch.where(near, (0.5 - scale * inner * body).clamp(min=0), scale * outer * tail)


@cache
def _legendre() -> tuple[tuple[float, float], ...]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return tuple(zip((0.5 * nodes + 0.5).tolist(), (0.5 * weights).tolist(), strict=True))


def _log_interval(  # noqa: PLR0917 - in the order of `Family.log_interval`
    family: Family,
    between: Callable[[Values, Values, Values], Values],
    low: Values,
    high: Values,
    log_width: Values,
    open_low: Open,
    open_high: Open,
) -> Values:
    """By symmetry both ends are moved below 0, where the distribution function has its digits."""
    closed_low, closed_high = (
        torch.where(open_low, high - 1, low),
        torch.where(open_high, low + 1, high),
    )
    log_width = torch.where(open_low | open_high, 0.0, log_width)
    middle = 0.5 * (closed_low + closed_high)
    top = torch.where(middle > 0, -closed_low, closed_high)
    # An interval around 0 has its upper end above 0, where digits are lost only of large numbers.
    width = log_width.clamp(min=_LOG_NARROW).exp()
    exact = between(top - width, top, width)
    narrow = family.log_prob(middle) + log_width
    inside = torch.where(log_width < _LOG_NARROW, narrow, exact)
    only_high, only_low = family.log_cdf(high), family.log_cdf(-low)
    return torch.where(
        open_low,
        torch.where(open_high, torch.zeros_like(inside), only_high),
        torch.where(open_high, only_low, inside),
    )


_STEPS = 768  # of the table: cubic interpolation is then exact to 1e-9
_FARTHEST = 14.0  # |arsinh t| of its ends, where the tails are below 1e-12


@dataclass(frozen=True)
class TabulatedStudent(Student):
    """Student's distribution with a table of its distribution function, for many values.

    Between nodes evenly spread in v = arsinh(t) it is the cubic with the right values and slopes.

    Args:
        row: the row of the table of each draw, or of all draws; of the shape of `dof`.
    """

    values: Float[Tensor, "rows nodes"]
    slopes: Float[Tensor, "rows nodes"]
    row: Int[Tensor, "*point"]

    @classmethod
    def of(cls, family: Student) -> "TabulatedStudent":
        """Tabulate a family with a degree of freedom for all draws, or one for each."""
        known, row = family.dof.double().flatten().unique(return_inverse=True)
        exact, v = Student(known.unsqueeze(1)), torch.linspace(-_FARTHEST, _FARTHEST, _STEPS + 1)
        v = v.to(known)
        t = torch.sinh(v)
        values, slopes = exact.cdf(t), exact.density(t) * torch.cosh(v)
        row = row.view(-1, 1, 1)
        return cls(known[row], values, slopes, row)

    def separated(self, samples: int, rows: int) -> "TabulatedStudent":
        dof, row = (_in_a_row(values, samples, rows) for values in (self.dof, self.row))
        return TabulatedStudent(dof, self.values, self.slopes, row)

    def of_samples(self, samples: Index) -> "TabulatedStudent":
        dof, row = (_of_samples(values, samples) for values in (self.dof, self.row))
        return TabulatedStudent(dof, self.values, self.slopes, row)

    def of_rows(self, rows: Index) -> "TabulatedStudent":
        dof, row = (_of_rows(values, rows) for values in (self.dof, self.row))
        return TabulatedStudent(dof, self.values, self.slopes, row)

    def cdf(self, t: Values) -> Values:
        step = 2 * _FARTHEST / _STEPS
        place = ((torch.asinh(t) + _FARTHEST) / step).clamp(0, _STEPS * (1 - 1e-12))
        index = place.long()
        u = place - index
        start = index + self.row * (_STEPS + 1)
        left, right = self.values.flatten()[start], self.values.flatten()[start + 1]
        rise, end_rise = self.slopes.flatten()[start], self.slopes.flatten()[start + 1]
        curve = left + u * u * (3 - 2 * u) * (right - left)
        return curve + step * u * (1 - u) * (rise * (1 - u) - end_rise * u)


def _in_a_row(of_draws: Tensor, samples: int, rows: int) -> Tensor:
    """Values of all draws, or of each, for the rows of one sample after the other."""
    if of_draws.numel() == 1:
        return of_draws
    return of_draws.expand(samples, 1, rows).reshape(1, 1, -1)


def _of_samples(of_draws: Tensor, samples: Index) -> Tensor:
    """Values of some draws; a single one is that of all draws."""
    return of_draws if of_draws.ndim < 3 or len(of_draws) == 1 else of_draws[samples]


def _of_rows(of_draws: Tensor, rows: Index) -> Tensor:
    """Values of some rows; a single one is that of all rows."""
    return of_draws if of_draws.ndim < 3 or of_draws.shape[2] == 1 else of_draws[..., rows]


def _log_gamma(x: Values) -> Values:
    """log Γ(x) for x > 0 by Stirling's series at x + 8, in operations that every runtime has."""
    y = x + 8
    factors = torch.ones_like(x)
    for i in range(8):
        factors = factors * (x + i)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * y * y)) / (y * y)) / (y * y)) / y
    return (y - 0.5) * y.log() - y + 0.5 * _LOG_2PI + series - factors.log()
