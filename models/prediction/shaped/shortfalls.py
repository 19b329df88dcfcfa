"""E(a − Y)⁺ of components on a target's scale, with the conventions of their means."""

from jaxtyping import Float
from torch import Tensor

from models.features.scales import IdentityScale
from models.features.targets import NumberTarget
from models.likelihoods.families import Family
from models.prediction.shaped.moments import MAX_SUMMED, PerComponent, arsinh, legendre, to_y

PerValue = Float[Tensor, "*samples 1 rows"]


def component_shortfalls(
    target: NumberTarget, family: Family, locs: PerComponent, scales: PerComponent, value: PerValue
) -> PerComponent:
    """E(a − Y)⁺ of each component, for a value a of each row, or of each sample and row.

    They are closed on the identity scale without bounds. Elsewhere values of z beyond
    `target.z_extremes` count as these extremes, as in `component_moments`. Of wide ranges of whole
    numbers it is that of the value before it is rounded: for a whole number a the sum over the
    smaller ones, which is exact, is the midpoint rule of this integral.
    """
    if target.integer:
        low, high = target.whole_numbers
        if high - low <= MAX_SUMMED:
            return _sum_whole(target, family, locs, scales, value)
    elif isinstance(target.scale, IdentityScale) and not target.is_bounded:
        unit = scales * target.std
        return unit * family.shortfall((value - target.mean - target.std * locs) / unit)
    return _integrate(target, family, locs, scales, value)


def _sum_whole(
    target: NumberTarget, family: Family, locs: PerComponent, scales: PerComponent, value: PerValue
) -> PerComponent:
    """Σ P(Y ≤ k) min(1, (a − k)⁺), k = low … high − 1, and what a is above `high`."""
    low, high = target.whole_numbers
    total = (value - high).clamp(min=0) + 0 * locs
    for i, edge in enumerate(target.whole_edges):
        below = family.cdf((edge - locs) / scales)
        total = total + below * (value - (low + i)).clamp(0, 1)
    return total


def _integrate(
    target: NumberTarget, family: Family, locs: PerComponent, scales: PerComponent, value: PerValue
) -> PerComponent:
    """Gauss–Legendre in v = arsinh(t) from the lower end up to a, where the integrand has a kink.

    At a bound of the support the component is cut off; at another end what is beyond counts as the
    end (`models.prediction.shaped.moments`).
    """
    low, high = target.z_extremes
    cut_low, cut_high = (bound is not None and not target.integer for bound in target.z_bounds)
    t_low = ((low - locs) / scales).clamp(-family.reach, family.reach)
    t_high = ((high - locs) / scales).clamp(-family.reach, family.reach)
    y_low, y_high = to_y(target, value.new_tensor([low, high])).tolist()
    inside = value.clamp(y_low, y_high)
    t_value = ((target.to_z(inside) - locs) / scales).clamp(min=t_low, max=t_high)
    start, stop = arsinh(t_low), arsinh(t_value)
    centre, half = 0.5 * (start + stop), 0.5 * (stop - start)
    total = 0 * locs
    for node, weight in zip(*legendre(), strict=True):
        v = centre + half * node
        up, down = v.exp(), (-v).exp()
        t = 0.5 * (up - down)
        share = weight * half * 0.5 * (up + down) * family.density(t)
        total = total + share * (inside - to_y(target, locs + scales * t))
    below, above = family.cdf(t_low), family.cdf(-t_high)
    if not cut_low:
        total = total + below * (inside - y_low)
    mass = 1 - (below if cut_low else 0.0) - (above if cut_high else 0.0)
    return (total / mass).clamp(min=0) + (value - y_high).clamp(min=0)
