"""The distribution function on z of a mixture without its atoms, and its inverse."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.special import ndtri

from models.likelihoods.families import Family

PerComponent = Float[Tensor, "samples components rows"]
PerRow = Float[Tensor, "rows"]

_MAX_STEPS = 100  # more than bisection alone would need
_TOLERANCE = 1e-7  # in standard deviations of z; the error is far smaller
_SMALLEST = 1e-12  # relative probability below which a quantile is the end of the support
_TAIL = 1e-6  # probability of each tail that numerical integrals leave out
_AT_ONCE = 2**18  # values in a product, which should stay in the processor's cache


@dataclass(frozen=True)
class Continuous:
    """G(z) = Σ weights · F((z − loc)/scale) − offset: 0 at the lower bound, `mass` at the upper.

    Args:
        weights: divided by the number of samples, and by each component's mass on the support.
        lower, upper: bounds of the support on z.
    """

    family: Family
    locs: PerComponent
    scales: PerComponent
    weights: PerComponent
    offset: PerRow
    mass: PerRow
    lower: float | None
    upper: float | None

    @classmethod
    def of(
        cls,
        family: Family,
        locs: PerComponent,
        scales: PerComponent,
        weights: PerComponent,
        bounds: tuple[float | None, float | None],
    ) -> "Continuous":
        """Components cut off at the bounds; their probabilities are divided by what is left."""
        lower, upper = bounds
        weights = weights / len(locs)
        mass = weights.sum((0, 1))
        below = None if lower is None else family.cdf((lower - locs) / scales)
        inside = 1.0 if upper is None else family.cdf((upper - locs) / scales)
        inside = inside if below is None else inside - below
        if isinstance(inside, Tensor):
            weights = weights / inside.clamp(min=1e-12)
        offset = torch.zeros_like(mass) if below is None else (weights * below).sum((0, 1))
        return cls(family, locs, scales, weights, offset, mass, lower, upper)

    def cdf(self, z: Float[Tensor, "*levels rows"]) -> Float[Tensor, "*levels rows"]:
        if z.ndim > 1:
            return torch.cat([self._cdf(part) for part in z.split(self.at_once)])
        return self._cdf(z)

    def _cdf(self, z: Float[Tensor, "*levels rows"]) -> Float[Tensor, "*levels rows"]:
        t = (z.unsqueeze(-2).unsqueeze(-2) - self.locs) / self.scales
        return (self.weights * self.family.cdf(t)).sum((-3, -2)) - self.offset

    def with_density(
        self, z: Float[Tensor, "levels rows"]
    ) -> tuple[Float[Tensor, "levels rows"], Float[Tensor, "levels rows"]]:
        """G and its derivative."""
        t = (z.unsqueeze(-2).unsqueeze(-2) - self.locs) / self.scales
        value = (self.weights * self.family.cdf(t)).sum((-3, -2)) - self.offset
        density = (self.weights / self.scales * self.family.density(t)).sum((-3, -2))
        return value, density

    def each(self, z: PerRow) -> tuple[Float[Tensor, "samples rows"], PerRow]:
        """The distribution function of every sample, whose mean is G, and the density of G."""
        weights = len(self.locs) * self.weights
        value = (weights * self.family.cdf((z - self.locs) / self.scales)).sum(1)
        if self.lower is not None:
            below = self.family.cdf((self.lower - self.locs) / self.scales)
            value = value - (weights * below).sum(1)
        return value, self.with_density(z.unsqueeze(0))[1].squeeze(0)

    def survival_each(
        self, z: Float[Tensor, "values rows"]
    ) -> Float[Tensor, "values samples rows"]:
        """P(Z > z) of every sample, with all digits of small probabilities."""
        above = self.family.survival((z.unsqueeze(1).unsqueeze(1) - self.locs) / self.scales)
        if self.upper is not None:
            above = above - self.family.survival((self.upper - self.locs) / self.scales)
        return len(self.locs) * (self.weights * above).sum(2)

    def density_each(self, z: Float[Tensor, "values rows"]) -> Float[Tensor, "values samples rows"]:
        """The density of every sample."""
        t = (z.unsqueeze(1).unsqueeze(1) - self.locs) / self.scales
        return len(self.locs) * (self.weights / self.scales * self.family.density(t)).sum(2)

    @property
    def at_once(self) -> int:
        return max(1, _AT_ONCE // self.locs.numel())

    def ends(self) -> Float[Tensor, "2 rows"]:
        """The probabilities between which integrals are computed."""
        return torch.stack([_TAIL * self.mass, (1 - _TAIL) * self.mass])

    def deviation(self) -> tuple[PerRow, PerRow]:
        """Mean and standard deviation on z, without the cut at the bounds."""
        weights = self.weights / self.weights.sum((0, 1))
        mean = (weights * self.locs).sum((0, 1))
        each = self.family.variance * self.scales.square() + (self.locs - mean).square()
        return mean, (weights * each).sum((0, 1)).sqrt()


def solve(of: Continuous, wanted: Float[Tensor, "levels rows"]) -> Float[Tensor, "levels rows"]:
    """z with G(z) = wanted; infinite, or the support's bound, from 0 down and from the mass up."""
    q = wanted / of.mass
    inside = torch.where((q < _SMALLEST) | (q > 1 - _SMALLEST), 0.5, q)
    mean, deviation = of.deviation()
    parts = inside.split(of.at_once)
    z = torch.cat([_newton(of, part, mean, deviation) for part in parts])
    low = -math.inf if of.lower is None else of.lower
    high = math.inf if of.upper is None else of.upper
    z = torch.where(q < _SMALLEST, low, z)
    return torch.where(q > 1 - _SMALLEST, high, z)


def _newton(
    of: Continuous, q: Float[Tensor, "levels rows"], mean: PerRow, deviation: PerRow
) -> Float[Tensor, "levels rows"]:
    """Newton's method within a bracket that shrinks with every step, from a Gaussian's quantile."""
    low, high = _bracket(of, q)
    wanted, tolerance = q * of.mass, _TOLERANCE * deviation
    z = torch.minimum(torch.maximum(mean + deviation * ndtri(q), low), high)
    for _ in range(_MAX_STEPS):
        value, density = of.with_density(z)
        excess = value - wanted
        low, high = torch.where(excess < 0, z, low), torch.where(excess > 0, z, high)
        step = z - excess / density.clamp(min=1e-300)
        inside = (step >= low) & (step <= high)
        previous, z = z, torch.where(inside, step, 0.5 * (low + high))
        if bool(((z - previous).abs() <= tolerance).all()):
            break
    return z


def _bracket(
    of: Continuous, q: Float[Tensor, "levels rows"]
) -> tuple[Float[Tensor, "levels rows"], Float[Tensor, "levels rows"]]:
    """A mixture's quantile lies between those of its components.

    A component is inside its support with a probability of at least a quarter, because locations
    are inside, so that the cut moves its quantiles no further than a quarter of the tail.
    """
    tail = 0.25 * torch.minimum(q, 1 - q)
    reach = of.family.tail_bound(tail).unsqueeze(-2).unsqueeze(-2) * of.scales
    ends = (of.locs - reach).amin((-3, -2)), (of.locs + reach).amax((-3, -2))
    if of.lower is None and of.upper is None:
        return ends
    return ends[0].clamp(of.lower, of.upper), ends[1].clamp(of.lower, of.upper)
