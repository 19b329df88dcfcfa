"""Predictive distributions of numbers: mixtures over samples of the posterior.

Each sample is a mixture of components of one family on the target's scale z = (g(y) − mean)/std,
with the atoms and the support of the target. A Gaussian head is the case of one normal component on
the plain scale. Every summary follows from the mixture: its mean, the decomposition of its variance
(Kendall and Gal 2017), its quantiles and its scores.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.targets import NumberTarget
from models.likelihoods.components import component_moments, component_shortfalls
from models.likelihoods.families import Family, Normal
from models.likelihoods.quantiles import TAIL, Continuous, following_grid, solve, whole_grid
from models.likelihoods.shaped import FLOOR, Parts, location_bounds, log_terms

PerRow = Float[Tensor, "rows"]
PerSample = Float[Tensor, "samples rows"]
PerComponent = Float[Tensor, "samples components rows"]
Values = Float[Tensor, "values rows"]
Ends = Float[Tensor, "ends rows"]
Pairs = Float[Tensor, "2 levels rows"]
ValuesPerSample = Float[Tensor, "values samples rows"]

_PLAIN = NumberTarget(0.0, 1.0)
_STARTS = 5  # lower tails that intervals of whole numbers are chosen from; the middle one is half
_AT_ONCE = 2**18  # values in a product, which should stay in the processor's cache
# Multiples of the golden ratio are as evenly spread in [0, 1) as any sequence (Weyl; Knuth 6.4).
_GOLDEN = 0.6180339887498949


def variance(values: Float[Tensor, "samples *rest"], correction: int) -> Float[Tensor, "*rest"]:
    """Variance along the first axis, in two passes; several times faster than `torch.var`."""
    centred = values - values.mean(0)
    return centred.square_().sum(0) / (len(values) - correction)


@dataclass(frozen=True)
class Integrated:
    """What integrating the last layer's weights in closed form tells of Gaussian samples.

    Args:
        spread: the variance of each sample's mean, which is part of its component's variance.
        noise: the expectation of each sample's noise variance. Its component has a draw of it.
        moments: mean and variance of the predicted mean of each member with all weights
            integrated; None if only the last layer's were.
    """

    spread: PerSample
    noise: PerSample
    moments: tuple[Float[Tensor, "some rows"], Float[Tensor, "some rows"]] | None = None

    def scaled(self, factor: float) -> "Integrated":
        moments = self.moments
        if moments is not None:
            centre = moments[0].mean(0)
            moments = centre + math.sqrt(factor) * (moments[0] - centre), factor * moments[1]
        return Integrated(factor * self.spread, factor * self.noise, moments)

    def of_rows(self, rows: Int[Tensor, "some"]) -> "Integrated":
        moments = self.moments and (self.moments[0][:, rows], self.moments[1][:, rows])
        return Integrated(self.spread[:, rows], self.noise[:, rows], moments)


@dataclass(frozen=True)
class NumberMixture:
    """Sample s predicts Σ_k weight[s, k] f((z − loc[s, k])/scale[s, k])/scale[s, k], and atoms.

    All samples weigh the same. Samples are the first axis, rows the last; float64.

    Args:
        atoms: probability of each of the target's atoms. With the weights they add up to 1.
        member: the member that each sample belongs to, if the network has several.
        integrated: what is known beside the components, if weights were integrated.
    """

    target: NumberTarget
    family: Family
    locs: PerComponent
    scales: PerComponent
    weights: PerComponent
    atoms: Float[Tensor, "samples atoms rows"]
    member: Int[Tensor, "samples"] | None = None
    integrated: Integrated | None = None

    @classmethod
    def gaussian(
        cls,
        means: PerSample,
        noise: PerSample,
        integrated: Integrated | None = None,
        member: Int[Tensor, "samples"] | None = None,
    ) -> "NumberMixture":
        """Sample s predicts N(mean[s], noise[s] + spread[s]), noise being a variance."""
        variances = noise if integrated is None else noise + integrated.spread
        locs, scales = means.unsqueeze(1), variances.to(means).sqrt().unsqueeze(1)
        weights, atoms = torch.ones_like(locs), locs[:, :0]
        return cls(_PLAIN, Normal(), locs, scales, weights, atoms, member, integrated)

    @classmethod
    def of(cls, target: NumberTarget, parts: Parts) -> "NumberMixture":
        """The mixture of predicted parts, whose components are the last axis."""
        locs, scales, weights, atoms = (
            part.double().transpose(-1, -2).contiguous()
            for part in (
                parts.locs,
                parts.log_scales.exp(),
                parts.log_weights.exp(),
                parts.log_atoms.exp(),
            )
        )
        return cls(target, parts.family, locs, scales, weights, atoms)

    @property
    def is_gaussian(self) -> bool:
        """Whether samples are Gaussians of y, which calibration scales about their mean."""
        return not self.target.is_shaped

    @property
    def num_samples(self) -> int:
        return len(self.locs)

    # Mixtures of other samples and rows

    def scaled(self, factor: float) -> "NumberMixture":
        """Multiply deviations from the mixture's mean on z by √factor.

        Atoms stay the same, and locations within the bounds of the likelihood. A Gaussian's mean
        stays the same, so that its Monte-Carlo error is that of the unscaled mixture.
        """
        root = math.sqrt(factor)
        centre = (self.weights * self.locs).sum((0, 1)) / self.weights.sum((0, 1))
        locs = centre + root * (self.locs - centre)
        if self.target.is_shaped:
            bounds = location_bounds(self.target)
            locs = locs.clamp(bounds.low_limit, bounds.high_limit)
        integrated = self.integrated and self.integrated.scaled(factor)
        return replace(self, locs=locs, scales=root * self.scales, integrated=integrated)

    def first(self, count: int) -> "NumberMixture":
        """The mixture of the first `count` samples, without what only moments use."""
        return self._changed(lambda part: part[:count])

    def of_members(self, member: Int[Tensor, "samples"] | None) -> "NumberMixture":
        """The mixture of samples that belong to these members."""
        return replace(self, member=member)

    def of_rows(self, rows: Int[Tensor, "some"]) -> "NumberMixture":
        """The mixtures of some rows, by their numbers."""
        integrated = self.integrated and self.integrated.of_rows(rows)
        mixture = self._changed(lambda part: part[..., rows])
        return replace(mixture, member=self.member, integrated=integrated)

    def separated(self) -> "NumberMixture":
        """One sample, whose rows are those of the first sample, of the second, …"""
        return self._changed(lambda part: part.transpose(0, 1).flatten(1).unsqueeze(0))

    def _changed(self, change: Callable[[Tensor], Tensor]) -> "NumberMixture":
        locs, scales, weights = change(self.locs), change(self.scales), change(self.weights)
        return NumberMixture(self.target, self.family, locs, scales, weights, change(self.atoms))

    # Moments

    @cached_property
    def _moments(self) -> tuple[PerSample, PerSample]:
        """E(y) and Var(y) of each sample; the spread between its components is part of it."""
        means, variances = component_moments(self.target, self.family, self.locs, self.scales)
        if means.shape[1] == 1 and not self.target.atoms:
            return means.squeeze(1), variances.squeeze(1)
        atoms = self.locs.new_tensor(self.target.atoms).view(-1, 1)
        mean = (self.weights * means).sum(1) + (self.atoms * atoms).sum(1)
        centre = mean.unsqueeze(1)
        within = self.weights * (variances + (means - centre).square())
        return mean, within.sum(1) + (self.atoms * (atoms - centre).square()).sum(1)

    def predicted_means(self) -> Float[Tensor, "some rows"]:
        """E(y | x, w_s) of each sample, or of fewer with more weights integrated."""
        if self.integrated is None or self.integrated.moments is None:
            return self._moments[0]
        return self.integrated.moments[0]

    def noise_variances(self) -> PerSample:
        """Var(y | x, w_s) of each sample."""
        variances = self._moments[1]
        return variances if self.integrated is None else variances - self.integrated.spread

    def expected_noise(self) -> PerSample:
        """The mean of `noise_variances` given what was not integrated."""
        return self._moments[1] if self.integrated is None else self.integrated.noise

    def mean(self) -> PerRow:
        return self.predicted_means().mean(0)

    def aleatoric(self) -> PerRow:
        """The mean over the samples of the expected noise variance."""
        return self.expected_noise().mean(0)

    def epistemic(self) -> PerRow:
        """The variance of the predicted mean (divided by S, two passes).

        If some weights were integrated: var_s E[m|s] + mean_s Var[m|s].
        """
        between = variance(self.predicted_means(), correction=0)
        if self.integrated is None:
            return between
        exact = self.integrated.moments
        return between + (self.integrated.spread if exact is None else exact[1]).mean(0)

    def location_variances(self) -> PerRow:
        """The variance on z, over the samples, of the mean location of the components."""
        means = (self.weights * self.locs).sum(1) / self.weights.sum(1)
        return variance(means, correction=0)

    def total(self) -> PerRow:
        """Aleatoric + epistemic."""
        return self.aleatoric() + self.epistemic()

    def epistemic_parts(self) -> PerSample:
        """What each sample adds to `epistemic`; 0 if all weights were integrated."""
        means = self._moments[0]
        if self.integrated is None:
            return (means - means.mean(0)).square()
        if self.integrated.moments is not None:
            return torch.zeros_like(means)
        return (means - means.mean(0)).square() + self.integrated.spread

    # Probabilities

    @cached_property
    def continuous(self) -> Continuous:
        """All but the atoms, on z."""
        bounds = (None, None) if self.target.integer else self.target.z_bounds
        return Continuous.of(self.family, self.locs, self.scales, self.weights, bounds)

    def cdf(self, value: PerRow) -> PerRow:
        """P(Y ≤ value)."""
        y = torch.floor(value) + 0.5 if self.target.integer else value
        return self._probability(y, self._atoms_up_to(value, inclusive=True), value, closed=True)

    def cdf_before(self, value: PerRow) -> PerRow:
        """P(Y < value)."""
        y = torch.ceil(value) - 0.5 if self.target.integer else value
        return self._probability(y, self._atoms_up_to(value, inclusive=False), value, closed=False)

    def _probability(self, edge: PerRow, atoms: PerRow, value: PerRow, *, closed: bool) -> PerRow:
        """Probability up to an edge, which is 0 below the support and 1 above it."""
        probability = atoms + self.continuous.cdf(self.target.to_z(self.target.inside(edge)))
        if self.target.lower is not None:
            outside = value < self.target.lower if closed else value <= self.target.lower
            probability = torch.where(outside, 0.0, probability)
        if self.target.upper is not None:
            outside = value >= self.target.upper if closed else value > self.target.upper
            probability = torch.where(outside, 1.0, probability)
        return probability.clamp(0.0, 1.0)

    def _atoms_up_to(self, value: PerRow, *, inclusive: bool) -> PerRow:
        total = torch.zeros_like(value)
        for atom, probability in zip(self.target.atoms, self.atoms.mean(0), strict=True):
            counted = value >= atom if inclusive else value > atom
            total = total + probability * counted
        return total

    def survival_parts(self, values: Values) -> ValuesPerSample:
        """P(Y > y) of each sample, with all digits of small probabilities.

        It is strictly above: an atom or a whole number at the value does not count.
        """
        target = self.target
        edge = torch.floor(values) + 0.5 if target.integer else values
        probability = self.continuous.survival_each(target.to_z(self.target.inside(edge)))
        for atom, share in zip(target.atoms, self.atoms.transpose(0, 1), strict=True):
            probability = probability + share * (values < atom).unsqueeze(1)
        if target.lower is not None:
            probability = torch.where((values < target.lower).unsqueeze(1), 1.0, probability)
        if target.upper is not None:
            probability = torch.where((values >= target.upper).unsqueeze(1), 0.0, probability)
        return probability.clamp(0.0, 1.0)

    def survival(self, values: Values) -> Values:
        """P(Y > y), the mean of `survival_parts`; it never increases with y."""
        return self._mean_of(self.survival_parts, values)

    def density_parts(self, values: Values) -> ValuesPerSample:
        """The density of each sample, without atoms; of whole numbers P(Y = y), atoms included."""
        target = self.target
        if target.integer:
            return self.survival_parts(values - 1) - self.survival_parts(values)
        inside = self.target.inside(values)
        density = self.continuous.density_each(target.to_z(inside))
        density = density * self._slope(inside).unsqueeze(1)
        return torch.where(target.is_possible(values).unsqueeze(1), density, 0.0)

    def density(self, values: Values) -> Values:
        """The mean of `density_parts`."""
        return self._mean_of(self.density_parts, values)

    def _slope(self, y: Tensor) -> Tensor:
        """dz/dy."""
        return torch.exp(self.target.scale.log_derivative(y)) / self.target.std

    def _mean_of(self, parts: Callable[[Values], ValuesPerSample], values: Values) -> Values:
        at_once = max(1, _AT_ONCE // self.locs.numel())
        return torch.cat([parts(block).mean(1) for block in values.split(at_once)])

    def grid(self, points: int) -> Float[Tensor, "points rows"]:
        """Increasing values that show each row's density; whole numbers if only these occur.

        Half are even in z, half of equal probability; atoms do not count.
        """
        if self.target.integer:
            low, high = self.quantiles([TAIL, 1 - TAIL])
            return whole_grid(low, high, points, self.target.lower, self.target.upper)
        low, high = self.continuous.ends(TAIL)
        return self.target.from_z(following_grid(self.continuous.cdf, low, high, points))

    @property
    def atom_values(self) -> tuple[float, ...]:
        """Values with a probability of their own, which `density` does not count."""
        return () if self.target.integer else self.target.atoms

    def atom_probabilities(self) -> Float[Tensor, "atoms rows"]:
        """The probability of each of `atom_values`."""
        return self.atoms[:, : len(self.atom_values)].mean(0)

    def log_prob(self, targets: PerRow) -> PerRow:
        """log density of y, or log probability where values have one.

        Outside the support of a target with a shape, where the probability is 0, it is −690, so
        that means are finite; no density or probability there is less.
        """
        y, target = targets.double(), self.target
        swapped = (self.locs, self.scales.log(), self.weights.log(), self.atoms)
        parts = Parts(self.family, *(part.transpose(-1, -2) for part in swapped))
        log_prob = torch.logsumexp(parts.log_weights + log_terms(target, parts, y), (0, -1))
        log_prob = log_prob - math.log(self.num_samples) + target.log_derivative(y)
        if not target.is_shaped:
            return log_prob
        for atom, probability in zip(target.atoms, self.atoms.mean(0).log(), strict=True):
            both = torch.logaddexp(log_prob, probability) if target.integer else probability
            log_prob = torch.where(y == atom, both, log_prob)
        return torch.where(target.is_possible(y), log_prob.clamp(min=FLOOR), FLOOR)

    def pit(self, targets: PerRow, start: int = 0) -> PerRow:
        """F(y), uniform if the predictions are right; at values with a probability, randomised.

        There it is F(y−) + v P(Y = y) (Czado, Gneiting and Held 2009). v follows from the row's
        number, of which the first is `start`: it is evenly spread, and equal for equal calls.
        """
        below, above = self.cdf_before(targets), self.cdf(targets)
        rows = torch.arange(start + 1, start + 1 + len(targets)).to(targets)
        return below + (rows * _GOLDEN).frac() * (above - below)

    # Quantiles

    def quantiles(self, levels: Sequence[float]) -> Float[Tensor, "levels rows"]:
        """The smallest value y with P(Y ≤ y) of at least each level."""
        wanted = self.locs.new_tensor(levels).view(-1, 1)
        return self.quantiles_at(wanted.expand(-1, self.locs.shape[-1]))

    def quantiles_at(self, levels: Float[Tensor, "levels rows"]) -> Float[Tensor, "levels rows"]:
        """`quantiles` of levels that differ between rows; at atoms and whole numbers, those."""
        if not self.target.atoms:
            return self.from_z(solve(self.continuous, levels))
        rest, at_atom = levels.clone(), torch.full_like(levels, math.nan)
        for value, probability in zip(self.target.atoms, self.atoms.mean(0), strict=True):
            before = self.cdf_before(torch.full_like(probability, value))
            above = levels > before + probability
            here = (levels > before) & ~above
            at_atom = torch.where(here, value, at_atom)
            rest = torch.where(above, rest - probability, torch.where(here, 0.0, rest))
        y = self.from_z(solve(self.continuous, rest))
        return torch.where(at_atom.isnan(), y, at_atom)

    def quantile(self, level: float) -> PerRow:
        """The value below which the mixture has probability `level`."""
        return self.quantiles([level])[0]

    def median(self) -> PerRow:
        return self.quantile(0.5)

    def intervals(self, levels: Sequence[float]) -> Pairs:
        """The credible interval of each level: its lower bounds, then its upper ones, included."""
        drops_ends = self.target.drops_ends
        tails = interval_tails(self.locs.new_tensor(levels).unsqueeze(1), drops_ends=drops_ends)
        ends = self.quantiles(tails[:, 0].tolist())
        return chosen(ends, tails.expand_as(ends), drops_ends=drops_ends)[0]

    def quantile_parts(self, values: Values) -> ValuesPerSample:
        """(1 − F_s(q)) ÷ f(q) at quantiles q of each row: what each sample adds to them.

        Of whole numbers before they are rounded; at an atom, which stays where it is, 0.
        """
        target, inside = self.target, self.target.inside(values)
        z = target.to_z(inside)
        above = self.continuous.survival_each(z)
        for atom, probability in zip(target.atoms, self.atoms.transpose(0, 1), strict=True):
            above = above + probability * (values < atom).unsqueeze(1)
        density = self.continuous.with_density(z)[1] * self._slope(inside)
        fixed = torch.zeros_like(values, dtype=torch.bool)
        for end in (*target.atoms, target.lower, target.upper):
            fixed = fixed if end is None else fixed | (values == end)
        return torch.where(fixed.unsqueeze(1), 0.0, above / density.unsqueeze(1))

    def from_z(self, z: Float[Tensor, "levels rows"]) -> Float[Tensor, "levels rows"]:
        """y of finite or infinite z; of whole numbers the one to which the value is rounded."""
        return torch.where(z.isinf(), self.target.inside(z), self.target.observed(z))

    # Losses

    def pinball(
        self, value: Float[Tensor, "*samples rows"], over: float, under: float
    ) -> PerSample:
        """E(over·(value − y)⁺ + under·(y − value)⁺ | w_s) of each sample.

        As means do, it counts values far beyond the training range as its extremes.

        Args:
            value: for each row, or for each sample and row.
        """
        target, spread = self.target, value.unsqueeze(-2)
        short = component_shortfalls(target, self.family, self.locs, self.scales, spread)
        atoms = (spread - self.locs.new_tensor(target.atoms).view(-1, 1)).clamp(min=0)
        above = (self.weights * short).sum(1) + (self.atoms * atoms).sum(1)
        below = above - (value - self._moments[0])
        return over * above + under * below.clamp(min=0)

    def least_pinball(self, over: float, under: float) -> PerSample:
        """`pinball` of the best value of each sample, if all weights were known."""
        known = self
        if self.integrated is not None:
            known = NumberMixture.gaussian(self.locs.squeeze(1), self.noise_variances())
        best = known.separated().quantile(under / (over + under))
        return known.pinball(best.view(self.num_samples, -1), over, under)


def interval_tails(probabilities: Float[Tensor, "levels rows"], *, drops_ends: bool) -> Ends:
    """The probabilities below the lower ends of intervals, then below their upper ends.

    The tails are equal. Of whole numbers (`drops_ends`) there are `_STARTS` intervals of each
    level, whose lower tails go from 0 to all that the level leaves.

    Args:
        probabilities: of the intervals.
    """
    shares = probabilities.new_full((1,), 0.5)
    if drops_ends:
        shares = torch.linspace(0, 1, _STARTS, dtype=shares.dtype, device=shares.device)
    lower = (1 - probabilities) * shares.view(-1, 1, 1)
    return torch.cat([lower, lower + probabilities]).flatten(0, 1)


def chosen(ends: Ends, tails: Ends, *, drops_ends: bool) -> tuple[Pairs, Pairs]:
    """The lower and the upper ends of the intervals, and the probabilities below them.

    The tails are equal. Of whole numbers each end is left out if the level is held without it: of
    those that hold it inside the central interval, it is the shortest and most central one.

    Args:
        ends: the quantiles of `tails`, which are those of `interval_tails`.
    """
    if not drops_ends:
        return ends.unflatten(0, (2, -1)), tails.unflatten(0, (2, -1))
    (low, high), own = (part.unflatten(0, (2, _STARTS, -1)) for part in (ends, tails))
    middle = _STARTS // 2
    lowest, highest = low[middle], high[middle]
    is_inside = (low >= lowest) & (high <= highest)
    within = torch.stack([torch.minimum(low, lowest + 1), torch.maximum(high, highest - 1)])
    off_centre = torch.arange(_STARTS, device=ends.device).sub(middle).abs() / _STARTS
    width = torch.where(is_inside, within[1] - within[0], torch.inf) + off_centre.view(-1, 1, 1)
    best = width.argmin(0, keepdim=True).expand(2, 1, -1, -1)
    is_moved = within != torch.stack([low, high])
    own = torch.where(is_moved, own[:, middle : middle + 1], own)
    return within.gather(1, best)[:, 0], own.gather(1, best)[:, 0]
