"""Means and variances in y of components on a target's scale."""

from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.features.scales import IdentityScale
from models.features.targets import NumberTarget
from models.likelihoods.families import Family

PerComponent = Float[Tensor, "samples components rows"]
Moments = tuple[PerComponent, PerComponent]

_NODES = 32
# Ranges of whole numbers over which moments are summed. Those of wider ranges are of the value
# before it is rounded, which is less than ½ away.
MAX_SUMMED = 128


def component_moments(
    target: NumberTarget, family: Family, locs: PerComponent, scales: PerComponent
) -> Moments:
    """Mean and variance of y of each component.

    They are closed on the identity scale without bounds. Elsewhere values of z beyond
    `target.z_extremes` count as these extremes.
    """
    if target.integer:
        low, high = target.whole_numbers
        if high - low <= MAX_SUMMED:
            return _sum_whole(target, family, locs, scales)
    elif isinstance(target.scale, IdentityScale) and not target.is_bounded:
        variance = family.variance * (scales * target.std).square()
        return target.mean + target.std * locs, variance
    return _integrate(target, family, locs, scales)


def _sum_whole(
    target: NumberTarget,
    family: Family,
    locs: PerComponent,
    scales: PerComponent,
) -> Moments:
    """E(Y − low) = Σ P(Y > k), E(Y − low)² = Σ (2(k − low) + 1) P(Y > k), k = low … high − 1."""
    first, second = torch.zeros_like(locs), torch.zeros_like(locs)
    for i, edge in enumerate(target.whole_edges):
        above = family.cdf((locs - edge) / scales)
        first, second = first + above, second + (2 * i + 1) * above
    return target.whole_numbers[0] + first, (second - first.square()).clamp(min=0)


def _integrate(
    target: NumberTarget, family: Family, locs: PerComponent, scales: PerComponent
) -> Moments:
    """Gauss–Legendre in v = arsinh(t), on the part of the z axis where values count.

    At a bound of the support the component is cut off. At another end what is beyond counts as the
    end. arsinh puts the nodes where the density is, for light tails and for heavy ones.
    """
    low, high = target.z_extremes
    is_cut = [bound is not None and not target.integer for bound in target.z_bounds]
    t_low = ((low - locs) / scales).clamp(-family.reach, family.reach)
    t_high = ((high - locs) / scales).clamp(-family.reach, family.reach)
    start, stop = arsinh(t_low), arsinh(t_high)
    centre, half = 0.5 * (start + stop), 0.5 * (stop - start)
    base = to_y(target, locs)
    mass, first, second = (torch.zeros_like(locs) for _ in range(3))
    for node, weight in legendre():
        v = centre + half * node
        up, down = v.exp(), (-v).exp()
        t = 0.5 * (up - down)
        share = weight * half * 0.5 * (up + down) * family.density(t)
        distance = to_y(target, locs + scales * t) - base
        weighted = share * distance
        mass, first, second = mass + share, first + weighted, second + weighted * distance
    for end, beyond, cut in (
        (low, family.cdf(t_low), is_cut[0]),
        (high, family.cdf(-t_high), is_cut[1]),
    ):
        if not cut:
            distance = to_y(target, torch.full_like(locs, end)) - base
            mass, first = mass + beyond, first + beyond * distance
            second = second + beyond * distance.square()
    first, second = first / mass, second / mass
    return base + first, (second - first.square()).clamp(min=0)


def arsinh(t: PerComponent) -> PerComponent:
    """log(t + √(t² + 1)), without cancellation, in operations that every runtime has."""
    size = t.abs()
    return t.sign() * torch.log1p(size + size.square() / (1 + (size.square() + 1).sqrt()))


def to_y(target: NumberTarget, z: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return target.scale.inverse(z * target.std + target.mean)


@cache
def legendre() -> tuple[tuple[float, float], ...]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return tuple(zip(nodes.tolist(), weights.tolist(), strict=True))
