"""Predictive distributions with a shape: mixtures on the target's scale, atoms, whole numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.features.targets import NumberTarget
from models.likelihoods.families import Family
from models.likelihoods.shaped import FLOOR, Bounded, Parts, log_terms
from models.prediction.density_grid import TAIL, following_grid, whole_grid
from models.prediction.number_mixture import NumberMixture, PerRow, PerSample, Values
from models.prediction.shaped.moments import component_moments
from models.prediction.shaped.quantiles import Continuous, solve
from models.prediction.shaped.scores import integrate_crps, sum_crps
from models.prediction.shaped.shortfalls import component_shortfalls

PerComponent = Float[Tensor, "samples components rows"]

# Whole numbers over which the CRPS is summed, the smallest first. The sum over larger ones is an
# integral, which differs little where probabilities change little from one number to the next.
MAX_SUMMED = 256


@dataclass(frozen=True)
class ShapedMixture(NumberMixture):
    """Sample s predicts Σ_k weight[s, k] f((z − loc[s, k])/scale[s, k])/scale[s, k], and atoms.

    Args:
        location_bounds: where locations stay when the distribution is scaled.
        atoms: probability of each of the target's atoms. With the weights they add up to 1.
    """

    target: NumberTarget
    family: Family
    location_bounds: Bounded
    locs: PerComponent
    scales: PerComponent
    weights: PerComponent
    atoms: Float[Tensor, "samples atoms rows"]
    member: Int[Tensor, "samples"] | None = None

    @classmethod
    def of(cls, target: NumberTarget, parts: Parts, bounds: Bounded) -> "ShapedMixture":
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
        return cls(target, parts.family, bounds, locs, scales, weights, atoms)

    @property
    def num_samples(self) -> int:
        return len(self.locs)

    def predicted_means(self) -> Float[Tensor, "samples rows"]:
        return self._moments[0]

    def noise_variances(self) -> Float[Tensor, "samples rows"]:
        """The spread between the components of a sample is part of it."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Float[Tensor, "samples rows"], Float[Tensor, "samples rows"]]:
        means, variances = component_moments(self.target, self.family, self.locs, self.scales)
        atoms = self.locs.new_tensor(self.target.atoms).view(-1, 1)
        mean = (self.weights * means).sum(1) + (self.atoms * atoms).sum(1)
        centre = mean.unsqueeze(1)
        within = self.weights * (variances + (means - centre).square())
        return mean, within.sum(1) + (self.atoms * (atoms - centre).square()).sum(1)

    def scaled(self, factor: float) -> "ShapedMixture":
        """Multiply deviations from the mixture's mean on z by √factor; atoms stay the same."""
        root = math.sqrt(factor)
        centre = (self.weights * self.locs).sum((0, 1)) / self.weights.sum((0, 1))
        low, high = self.location_bounds.low_limit, self.location_bounds.high_limit
        locs = (centre + root * (self.locs - centre)).clamp(low, high)
        return replace(self, locs=locs, scales=root * self.scales)

    def first(self, count: int) -> "ShapedMixture":
        parts = {name: getattr(self, name)[:count] for name in ("locs", "scales", "weights")}
        member = None if self.member is None else self.member[:count]
        return replace(self, **parts, atoms=self.atoms[:count], member=member)

    def of_members(self, member: Int[Tensor, "samples"] | None) -> "ShapedMixture":
        return replace(self, member=member)

    def of_rows(self, rows: Int[Tensor, "some"]) -> "ShapedMixture":
        names = ("locs", "scales", "weights", "atoms")
        parts = {name: getattr(self, name)[..., rows] for name in names}
        return replace(self, **parts)

    @cached_property
    def continuous(self) -> Continuous:
        """All but the atoms, on z."""
        bounds = (None, None) if self.target.integer else self.target.z_bounds
        return Continuous.of(self.family, self.locs, self.scales, self.weights, bounds)

    def cdf(self, value: PerRow) -> PerRow:
        y = torch.floor(value) + 0.5 if self.target.integer else value
        return self._probability(y, self._atoms_up_to(value, inclusive=True), value, closed=True)

    def cdf_before(self, value: PerRow) -> PerRow:
        y = torch.ceil(value) - 0.5 if self.target.integer else value
        return self._probability(y, self._atoms_up_to(value, inclusive=False), value, closed=False)

    def _probability(self, edge: PerRow, atoms: PerRow, value: PerRow, *, closed: bool) -> PerRow:
        """Probability up to an edge, which is 0 below the support and 1 above it."""
        edge = edge.clamp(self.target.lower, self.target.upper) if self.target.is_bounded else edge
        probability = atoms + self.continuous.cdf(self.target.to_z(edge))
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

    @property
    def locations(self) -> PerComponent:
        return self.locs

    @property
    def is_whole(self) -> bool:
        return self.target.integer

    @property
    def has_shortest(self) -> bool:
        return self.target.shortest

    @property
    def atom_values(self) -> tuple[float, ...]:
        return () if self.is_whole else self.target.atoms

    def atom_probabilities(self) -> Float[Tensor, "atoms rows"]:
        return super().atom_probabilities() if self.is_whole else self.atoms.mean(0)

    def survival_parts(self, values: Values) -> PerSample:
        """Strictly above: an atom or a whole number at the value does not count."""
        target = self.target
        edge = torch.floor(values) + 0.5 if target.integer else values
        edge = edge.clamp(target.lower, target.upper) if target.is_bounded else edge
        probability = self.continuous.survival_each(target.to_z(edge))
        for atom, share in zip(target.atoms, self.atoms.transpose(0, 1), strict=True):
            probability = probability + share * (values < atom).unsqueeze(1)
        if target.lower is not None:
            probability = torch.where((values < target.lower).unsqueeze(1), 1.0, probability)
        if target.upper is not None:
            probability = torch.where((values >= target.upper).unsqueeze(1), 0.0, probability)
        return probability.clamp(0.0, 1.0)

    def density_parts(self, values: Values) -> PerSample:
        target = self.target
        if target.integer:
            return self.survival_parts(values - 1) - self.survival_parts(values)
        inside = values.clamp(target.lower, target.upper) if target.is_bounded else values
        slope = torch.exp(target.scale.log_derivative(inside)) / target.std
        density = self.continuous.density_each(target.to_z(inside)) * slope.unsqueeze(1)
        return torch.where(target.is_possible(values).unsqueeze(1), density, 0.0)

    def grid(self, points: int) -> Float[Tensor, "points rows"]:
        """Even in z, and of equal probability, without the atoms."""
        if self.is_whole:
            low, high = self.quantiles([TAIL, 1 - TAIL])
            return whole_grid(low, high, points, self.target.lower, self.target.upper)
        tails = torch.stack([TAIL * self.continuous.mass, (1 - TAIL) * self.continuous.mass])
        low, high = solve(self.continuous, tails)
        return self.target.from_z(following_grid(self.continuous.cdf, low, high, points))

    def log_prob(self, targets: PerRow) -> PerRow:
        """Outside the support, where the probability is 0, it is −690, so that means are finite."""
        y, target = targets.double(), self.target
        swapped = (self.locs, self.scales.log(), self.weights.log(), self.atoms)
        parts = Parts(self.family, *(part.transpose(-1, -2) for part in swapped))
        log_prob = torch.logsumexp(parts.log_weights + log_terms(target, parts, y), (0, -1))
        log_prob = log_prob - math.log(self.num_samples) + target.log_derivative(y)
        for atom, probability in zip(target.atoms, self.atoms.mean(0).log(), strict=True):
            both = torch.logaddexp(log_prob, probability) if target.integer else probability
            log_prob = torch.where(y == atom, both, log_prob)
        return torch.where(target.is_possible(y), log_prob.clamp(min=FLOOR), FLOOR)

    def quantiles(self, levels: Sequence[float]) -> Float[Tensor, "levels rows"]:
        wanted = self.locs.new_tensor(levels).view(-1, 1)
        return self.quantiles_at(wanted.expand(-1, self.locs.shape[-1]))

    def quantiles_at(self, levels: Float[Tensor, "levels rows"]) -> Float[Tensor, "levels rows"]:
        """By Newton's method within a bracket on z; at atoms and whole numbers, those."""
        if not self.target.atoms:
            return self._from_z(solve(self.continuous, levels))
        rest, at_atom = levels.clone(), torch.full_like(levels, math.nan)
        for value, probability in zip(self.target.atoms, self.atoms.mean(0), strict=True):
            before = self.cdf_before(torch.full_like(probability, value))
            above = levels > before + probability
            here = (levels > before) & ~above
            at_atom = torch.where(here, value, at_atom)
            rest = torch.where(above, rest - probability, torch.where(here, 0.0, rest))
        y = self._from_z(solve(self.continuous, rest))
        return torch.where(at_atom.isnan(), y, at_atom)

    def quantile_parts(self, value: PerRow) -> Float[Tensor, "samples rows"]:
        """Of whole numbers before they are rounded; at an atom, which stays where it is, 0."""
        target = self.target
        inside = value.clamp(target.lower, target.upper) if target.is_bounded else value
        z = target.to_z(inside)
        below, density = self.continuous.each(z)
        for atom, probability in zip(target.atoms, self.atoms.transpose(0, 1), strict=True):
            below = below + probability * (value >= atom)
        slope = torch.exp(target.scale.log_derivative(inside)) / target.std
        fixed = torch.zeros_like(value, dtype=torch.bool)
        for end in (*target.atoms, target.lower, target.upper):
            fixed = fixed if end is None else fixed | (value == end)
        return torch.where(fixed, 0.0, -below / (density * slope))

    def pinball(
        self, value: Float[Tensor, "*samples rows"], over: float, under: float
    ) -> Float[Tensor, "samples rows"]:
        """As means do, it counts values far beyond the training range as its extremes."""
        target, spread = self.target, value.unsqueeze(-2)
        short = component_shortfalls(target, self.family, self.locs, self.scales, spread)
        atoms = (spread - self.locs.new_tensor(target.atoms).view(-1, 1)).clamp(min=0)
        above = (self.weights * short).sum(1) + (self.atoms * atoms).sum(1)
        below = above - (value - self.predicted_means())
        return over * above + under * below.clamp(min=0)

    def least_pinball(self, over: float, under: float) -> Float[Tensor, "samples rows"]:
        best = self.separated().quantile(under / (over + under))
        return self.pinball(best.view(self.num_samples, -1), over, under)

    def separated(self) -> "ShapedMixture":
        """One sample, whose rows are those of the first sample, of the second, …"""
        return replace(
            self,
            locs=_in_a_row(self.locs),
            scales=_in_a_row(self.scales),
            weights=_in_a_row(self.weights),
            atoms=_in_a_row(self.atoms),
            member=None,
        )

    def _from_z(self, z: Float[Tensor, "levels rows"]) -> Float[Tensor, "levels rows"]:
        """y of finite or infinite z; of whole numbers the one to which the value is rounded."""
        target = self.target
        y = target.scale.inverse(z * target.std + target.mean)
        y = torch.where(z.isinf(), z, y)
        if target.integer:
            y = torch.ceil(y - 0.5 - 1e-9) + 0.0  # which makes −0 a plain 0
        return y.clamp(target.lower, target.upper) if target.is_bounded else y

    def crps(self, targets: PerRow) -> PerRow:
        """By integrating, with F linear between nodes that follow it; whole numbers are summed."""
        y = targets.double()
        ends = solve(self.continuous, self.continuous.ends())
        low, high = self._from_z(ends)
        values = torch.stack([low, high, y, *(torch.full_like(y, a) for a in self.target.atoms)])
        low, high = values.amin(0), values.amax(0)
        if not self.target.integer:
            return integrate_crps(self, y, low, high)
        low = low.floor()
        count = min(int((high - low).max()) + 1, MAX_SUMMED)
        summed = sum_crps(self.cdf, y, low, count)
        if count < MAX_SUMMED:
            return summed
        return summed + integrate_crps(self, y, low + count, torch.maximum(high, low + count))

    def has_probability(self, y: PerRow) -> Bool[Tensor, "rows"]:
        return self.target.has_probability(y)


def _in_a_row(
    parts: Float[Tensor, "samples some rows"],
) -> Float[Tensor, "1 some all_rows"]:
    """The rows of the first sample, then those of the second, …"""
    return parts.transpose(0, 1).flatten(1).unsqueeze(0)
