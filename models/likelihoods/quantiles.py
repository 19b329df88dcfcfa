"""The distribution function on z of a mixture without its atoms, its inverse, and grids of values.

`models.prediction.compiled` has the same in compiled loops, for answers that ask nothing more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import ndtri

from models.likelihoods.families import Family, Normal

PerComponent = Float[Tensor, "samples components rows"]
PerRow = Float[Tensor, "rows"]
Levels = Float[Tensor, "levels rows"]
Nodes = Float[Tensor, "nodes rows"]
Index = Int[Tensor, "some"] | slice

_PER_ROW = ("locs", "scales", "weights", "offset", "mass")
_MAX_STEPS = 150  # half of which may have to halve the bracket
_FREE_STEPS = 8  # after which every other step halves it
_TOLERANCE = 1e-9  # in standard deviations of z: no further step after one that is smaller
_ERROR = 1e-8  # in standard deviations of z: no further step that is expected to be smaller
_QUADRATIC = 1e-3  # in standard deviations: steps that foretell the next one's length
_BLOCKS = 4  # of samples, which start with the quantiles of their common moments
_NODES, _REACH = 24, 3.0  # of the grid that quantiles start from: u = −3 … 3, z = mean + σ sinh u
_SMALLEST = 1e-12  # relative probability below which a quantile is the end of the support
_AT_ONCE = 2**18  # values in a product, which should stay in the processor's cache
_SOLVED_AT_ONCE = 2**16  # of which a step needs several

TAIL = 1e-3  # probability of each tail that a grid leaves out
_ROUNDS = 3  # each finds a peak that is about a dozen times narrower


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
        """G, of many levels a few at a time."""
        if z.ndim == 1:
            return self._cdf(z)
        at_once = max(1, _AT_ONCE // self.locs.numel())
        return torch.cat([self._cdf(part) for part in z.split(at_once)])

    def _cdf(self, z: Float[Tensor, "*levels rows"]) -> Float[Tensor, "*levels rows"]:
        t = (z.unsqueeze(-2).unsqueeze(-2) - self.locs) / self.scales
        return (self.weights * self.family.cdf(t)).sum((-3, -2)) - self.offset

    def with_density(
        self, z: Float[Tensor, "levels rows"]
    ) -> tuple[Float[Tensor, "levels rows"], Float[Tensor, "levels rows"]]:
        """G and its derivative."""
        t = (z.unsqueeze(-2).unsqueeze(-2) - self.locs) * self.rates
        below, density = self.family.cdf_and_density(t)
        value = (self.weights * below).sum((-3, -2)) - self.offset
        return value, (self.heights * density).sum((-3, -2))

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

    @cached_property
    def rates(self) -> PerComponent:
        """1/scale."""
        return self.scales.reciprocal()

    @cached_property
    def heights(self) -> PerComponent:
        """weight/scale."""
        return self.weights * self.rates

    def of_rows(self, rows: Index) -> "Continuous":
        """The functions of some rows, by their numbers."""
        parts = {n: getattr(self, n)[..., rows].contiguous() for n in _PER_ROW}
        return replace(self, **parts)

    def merged(self) -> "Continuous":
        """About this function, with one sample for each block of successive ones.

        A block's component has the mean and the variance of its samples' components.
        """
        size = len(self.locs) // _BLOCKS
        if size < 2:
            return self
        each = slice(size * _BLOCKS)
        weights, locs, scales = (
            part[each].unflatten(0, (_BLOCKS, size))
            for part in (self.weights, self.locs, self.scales)
        )
        family = self.family
        total = weights.sum(1)
        shares = weights / total.clamp(min=1e-300).unsqueeze(1)
        loc = (shares * locs).sum(1)
        spread = (shares * (locs - loc.unsqueeze(1)).square()).sum(1) / family.variance
        scale = ((shares * scales.square()).sum(1) + spread).sqrt().clamp(min=1e-300)
        at_ends = (
            None if end is None else (total * family.cdf((end - loc) / scale)).sum((0, 1))
            for end in (self.lower, self.upper)
        )
        offset, top = at_ends
        offset = torch.zeros_like(self.offset) if offset is None else offset
        mass = (total.sum((0, 1)) if top is None else top) - offset
        return Continuous(family, loc, scale, total, offset, mass, self.lower, self.upper)

    def ends(self, tail: float) -> Levels:
        """The values of z that leave out this probability on each side."""
        return solve(self, torch.stack([tail * self.mass, (1 - tail) * self.mass]))

    def deviation(self) -> tuple[PerRow, PerRow]:
        """Mean and standard deviation on z, without the cut at the bounds."""
        weights = self.weights / self.weights.sum((0, 1))
        mean = (weights * self.locs).sum((0, 1))
        each = self.family.variance * self.scales.square() + (self.locs - mean).square()
        return mean, (weights * each).sum((0, 1)).sqrt()


def solve(of: Continuous, wanted: Levels) -> Levels:
    """z with G(z) = wanted; infinite, or the support's bound, from 0 down and from the mass up."""
    q = wanted / of.mass
    inside = torch.where((q < _SMALLEST) | (q > 1 - _SMALLEST), 0.5, q)
    step = max(1, _SOLVED_AT_ONCE // (len(q) * of.locs[..., 0].numel()))
    starts = range(0, q.shape[1], step)
    if len(starts) > 1:
        parts = [slice(start, start + step) for start in starts]
        z = torch.cat([_solve(of.of_rows(part), inside[:, part]) for part in parts], 1)
    else:
        z = _solve(of, inside)
    low = -math.inf if of.lower is None else of.lower
    high = math.inf if of.upper is None else of.upper
    z = torch.where(q < _SMALLEST, low, z)
    return torch.where(q > 1 - _SMALLEST, high, z)


def _solve(of: Continuous, q: Levels) -> Levels:
    low, high = _bracket(of, q)
    if isinstance(of.family, Normal) and of.lower is None and of.upper is None:
        mean, deviation = of.deviation()
        start = torch.addcmul(mean, deviation, ndtri(q))
    else:
        few = of.merged()
        mean, deviation = few.deviation()
        start = _start(few, q, mean, deviation)
    z = start.clamp(low, high)
    return _newton(of, Solution(q, q.logit(), z, low, high, torch.zeros_like(z)), deviation)


@dataclass(frozen=True)
class Solution:
    """Values z between `low` and `high` for probabilities q, and the length of the last step."""

    q: Levels
    logits: Levels
    z: Levels
    low: Levels
    high: Levels
    step: Levels

    def of_rows(self, rows: Index) -> "Solution":
        return Solution(*(value[:, rows] for value in vars(self).values()))


def _start(of: Continuous, q: Levels, mean: PerRow, deviation: PerRow) -> Levels:
    """Quantiles by interpolating the logit of the distribution function on a grid.

    The logit of a logistic distribution function is a line, and that of others is nearly one.
    """
    u = torch.linspace(-_REACH, _REACH, _NODES, dtype=q.dtype, device=q.device)
    z = mean + deviation * torch.sinh(u).unsqueeze(1)
    if of.lower is not None or of.upper is not None:
        z = z.clamp(of.lower, of.upper)
    known = (of.cdf(z) / of.mass).logit(eps=_SMALLEST)
    wanted = q.logit(eps=_SMALLEST)
    after = torch.searchsorted(known.T.contiguous(), wanted.T.contiguous()).T.clamp(1, _NODES - 1)
    before = after - 1
    left, right = known.gather(0, before), known.gather(0, after)
    share = ((wanted - left) / (right - left).clamp(min=1e-300)).clamp(0, 1)
    return z.gather(0, before).lerp(z.gather(0, after), share)


def _newton(of: Continuous, now: Solution, deviation: PerRow) -> Levels:
    """Newton's method for the logit of G, within a bracket that shrinks with every step.

    It converges quadratically: after steps of lengths a and b the next one's is about b (b/a)².
    Rows whose next steps would be no longer than `_ERROR` are left as they are.
    """
    for number in range(_MAX_STEPS):
        value, density = of.with_density(now.z)
        p = value / of.mass
        is_below = p < now.q
        low = torch.where(is_below, now.z, now.low)
        high = torch.where(is_below, now.high, now.z)
        # The slope of logit G is density ÷ (mass p (1 − p)).
        rise = (now.logits - p.logit()).mul_(value * (1 - p))
        z = torch.addcdiv(now.z, rise, density)
        trusted = z.clamp(low, high) == z
        if number > _FREE_STEPS and number % 2:
            trusted = torch.zeros_like(trusted)
        z = torch.where(trusted, z, 0.5 * (low + high))
        length = (z - now.z).abs_().div_(deviation)
        next_length = length * (length / now.step).square_()
        done = (length < _QUADRATIC) & (next_length < _ERROR) | ~(length > _TOLERANCE)
        now = Solution(now.q, now.logits, z, low, high, length)
        left = torch.nonzero(~done.all(0)).squeeze(1)  # NaN, of forecasts that diverge, is done
        if not len(left):
            break
        if 2 * len(left) <= z.shape[1]:
            rest = _newton(of.of_rows(left), now.of_rows(left), deviation[left])
            return z.index_copy(1, left, rest)
    return now.z


def _bracket(of: Continuous, q: Levels) -> tuple[Levels, Levels]:
    """A mixture's quantile lies between those of its components.

    A component is inside its support with a probability of at least a quarter, because locations
    are inside, so that the cut moves its quantiles no further than a quarter of the tail.
    """
    tail = 0.25 * torch.minimum(q, 1 - q)
    reach = of.family.tail_bound(tail) * of.scales.amax((0, 1))
    ends = of.locs.amin((0, 1)) - reach, of.locs.amax((0, 1)) + reach
    if of.lower is None and of.upper is None:
        return ends
    return ends[0].clamp(of.lower, of.upper), ends[1].clamp(of.lower, of.upper)


# Grids of values on which a row's density is drawn


def even_grid(low: PerRow, high: PerRow, count: int) -> Nodes:
    """So many values from `low` to `high`, evenly spread."""
    share = torch.linspace(0, 1, count).to(low).unsqueeze(-1)
    return low + share * (high - low)


def following_grid(cdf: Callable[[Nodes], Nodes], low: PerRow, high: PerRow, points: int) -> Nodes:
    """Increasing values from `low` to `high`: half evenly spread, half of equal probability.

    The former show the tails, the latter narrow peaks.
    """
    even = even_grid(low, high, max(2, points - points // 2))
    count = points - len(even)
    if not count:
        return even
    share = ((torch.arange(count) + 0.5) / count).to(low).unsqueeze(-1)
    nodes, values = even, cdf(even)
    for _ in range(_ROUNDS - 1):
        finer = inverse(nodes, values, share)
        nodes, order = torch.cat([nodes, finer]).sort(0)
        values = torch.cat([values, cdf(finer)]).gather(0, order)
    return torch.cat([even, inverse(nodes, values, share)]).sort(0).values


def inverse(z: Nodes, values: Nodes, share: Float[Tensor, "some 1"]) -> Float[Tensor, "some rows"]:
    """z at which increasing values, interpolated linearly, reach a share of their range."""
    wanted = values[0] + share * (values[-1] - values[0])
    index = torch.searchsorted(values.T.contiguous(), wanted.T.contiguous()).T
    index = index.clamp(1, len(z) - 1)
    before, after = values.gather(0, index - 1), values.gather(0, index)
    part = ((wanted - before) / (after - before).clamp(min=1e-300)).clamp(0, 1)
    below = z.gather(0, index - 1)
    return below + part * (z.gather(0, index) - below)


def whole_grid(
    low: PerRow, high: PerRow, points: int, lower: float | None, upper: float | None
) -> Float[Tensor, "points rows"]:
    """Whole numbers from `low` to `high`: all of them, with others around, or evenly spread ones.

    Args:
        lower, upper: the support, which others leave only if it has fewer numbers than points.
    """
    spare = (points - 1 - (high - low)).clamp(min=0)
    start = low - (spare / 2).floor()
    start = start if upper is None else start.clamp(max=upper - points + 1)
    start = start if lower is None else start.clamp(min=lower)
    each = start + torch.arange(points).to(low).unsqueeze(-1)
    return torch.where(spare > 0, each, even_grid(low, high, points).round())
