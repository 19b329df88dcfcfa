"""The likelihood of targets with a shape: a mixture on the scale z, atoms, whole numbers.

P(y) = a_j at the atom j; elsewhere, with the rest a_0 of the probability, log density of z

    log a_0 + logsumexp_k [log π_k + log f((z − m_k)/s_k) − log s_k − log P_k(support)]

for densities, or log a_0 + logsumexp_k [log π_k + log P_k(z(y − ½) < z < z(y + ½))] for whole
numbers, with open ends at the bounds of the support. Locations, scales, logits and atoms are
functions of the inputs. Training needs no Jacobian, which is constant per row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.features.targets import NumberTarget
from models.likelihoods.families import FAMILIES, Family, FamilyName, Logistic
from models.likelihoods.likelihood import Outputs, PerRow

Components = Float[Tensor, "*samples rows components"]

# Bounds on the scales, in standard deviations of the target: as small as today's smallest noise
# (a table without noise needs it), and not far above what a constant prediction would need.
MIN_SCALE, MAX_SCALE = 3e-4, 3.0
_SCALE_KNEES = 1e-3, 1.5  # between these, scales are as the network says
# Locations reach at most a standard deviation beyond the training targets, and never leave the
# support: far outside the training data a line would otherwise predict anything.
_MARGIN = 1.0
_BEND = 0.25  # the way in which a location approaches a bound of the support
_INITIAL_ATOM = -1.4  # log odds of an atom: a fifth of the rows
# Of a whole number's interval on z in float64: above it the difference of the ends is good to 1e-9,
# below it the slope, as z is smooth.
_LOST = 1e-6
_ROUNDS = 20  # of draws outside the support, which are repeated; then they are moved to its ends
FLOOR = -math.log(1e300)  # log probability of what is impossible


@dataclass(frozen=True)
class Bounded:
    """x between the knees, and beyond them a smooth approach to the limits: no gradient vanishes.

    low_limit + … < low ≤ x ≤ high < … high_limit.
    """

    low_limit: float
    low: float
    high: float
    high_limit: float

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        below, above = self.low - self.low_limit, self.high_limit - self.high
        inside = x.clamp(self.low, self.high)
        room = torch.where(x < self.low, below, above)
        return inside + room * torch.tanh((x - inside) / room)  # tanh 0 = 0: x between the knees


@dataclass(frozen=True)
class Parts:
    """The predicted distribution on z; the last axis are components, or atoms.

    `log_weights` are log(a_0 π_k): with the atoms they add up to 1.
    """

    family: Family
    locs: Components
    log_scales: Components
    log_weights: Components
    log_atoms: Float[Tensor, "*samples rows atoms"]


@dataclass(frozen=True)
class ShapedLikelihood:
    """A mixture of `components` of a family on the target's scale, with its atoms and support.

    The outputs are locations, log-scales, logits (of more than one component) and log odds of the
    atoms. All are relative to constants from which training starts: components begin at different
    places, so that they do not stay the same.
    """

    parameters: ClassVar[Mapping[str, float]] = {}

    target: NumberTarget
    family: FamilyName
    components: int = 1

    @property
    def num_outputs(self) -> int:
        return self._first_atom + len(self.target.atoms)

    @property
    def noise_outputs(self) -> tuple[int, ...]:
        """All but the locations."""
        return tuple(range(self.components, self.num_outputs))

    def parts(self, outputs: Outputs) -> Parts:
        """The distribution that the outputs describe."""
        k = self.components
        starts = outputs.new_tensor(self._start)
        log_scales = outputs[..., k : 2 * k] + math.log(self._start_scale)
        logits = outputs[..., 2 * k : self._first_atom] if k > 1 else outputs[..., :1] * 0
        log_weights = torch.log_softmax(logits, dim=-1)
        log_atoms = outputs[..., self._first_atom :] + _INITIAL_ATOM
        if self.target.atoms:
            rest = outputs[..., :1] * 0
            shares = torch.log_softmax(torch.cat([rest, log_atoms], dim=-1), dim=-1)
            log_weights, log_atoms = log_weights + shares[..., :1], shares[..., 1:]
        return Parts(
            FAMILIES[self.family],
            self.location_bounds(outputs[..., :k] + starts),
            _LOG_SCALES(log_scales),
            log_weights,
            log_atoms,
        )

    def log_prob(self, outputs: Outputs, targets: Tensor, point: dict[str, Tensor]) -> PerRow:
        """log density of z, or log probability; a target outside the support counts as its bound.

        Args:
            targets: y, in the target's units.
        """
        parts, y = self.parts(outputs), targets.double()
        log_prob = torch.logsumexp(parts.log_weights + log_terms(self.target, parts, y), dim=-1)
        for j, atom in enumerate(self.target.atoms):
            log_atom, here = parts.log_atoms[..., j], y == atom
            both = torch.logaddexp(log_prob, log_atom) if self.target.integer else log_atom
            log_prob = torch.where(here, both, log_prob)
        return log_prob

    def moved(self, outputs: Outputs, offsets: Float[Tensor, "rows 2"]) -> Outputs:
        """The outputs of the distribution whose locations are moved by N(m, s²).

        A component's variance grows by s², which is exact for Gaussians.

        Args:
            offsets: m and s of each row, on z.
        """
        k, (mean, deviation) = self.components, offsets.unsqueeze(-2).unbind(-1)
        start = math.log(self._start_scale)
        unit = math.sqrt(FAMILIES[self.family].variance)  # the deviation at scale 1
        log_scales = _LOG_SCALES(outputs[..., k : 2 * k] + start)
        added = 2 * (deviation / unit).log()
        scales = 0.5 * torch.logaddexp(2 * log_scales, added.expand_as(log_scales)) - start
        return torch.cat([outputs[..., :k] + mean, scales, outputs[..., 2 * k :]], dim=-1)

    @cached_property
    def location_bounds(self) -> Bounded:
        """`location_bounds` of the target."""
        return location_bounds(self.target)

    @property
    def scale_bounds(self) -> Bounded:
        """Where log-scales are (`MIN_SCALE`, `MAX_SCALE`)."""
        return _LOG_SCALES

    @property
    def start(self) -> tuple[list[float], float, float]:
        """Where training starts: locations, log-scale and log odds of an atom."""
        return self._start, math.log(self._start_scale), _INITIAL_ATOM

    @property
    def _first_atom(self) -> int:
        return self.components * (3 if self.components > 1 else 2)

    @cached_property
    def _start(self) -> list[float]:
        """Quantiles of a standard normal, as z has mean 0 and variance 1."""
        k, normal = self.components, NormalDist()
        return [normal.inv_cdf((i + 0.5) / k) for i in range(k)]

    @property
    def _start_scale(self) -> float:
        deviation = 1.0 if self.components == 1 else 0.5
        return deviation / math.sqrt(FAMILIES[self.family].variance)


def location_bounds(target: NumberTarget) -> Bounded:
    """Locations stay inside the support, and near the range of the training targets."""
    assert target.z_range is not None
    (low, high), (lowest, highest) = target.z_range, target.z_extremes
    low_limit, high_limit = max(low - _MARGIN, lowest), min(high + _MARGIN, highest)
    bend = min(_BEND, 0.25 * (high_limit - low_limit))
    low, high = max(low, low_limit + bend), min(high, high_limit - bend)
    return Bounded(low_limit, min(low, high), max(low, high), high_limit)


def log_terms(target: NumberTarget, parts: Parts, y: Float[Tensor, "rows"]) -> Components:
    """log density of z (or log probability of a whole number y) of each component."""

    def distance(z: Tensor | float) -> Components:
        if isinstance(z, Tensor):
            z = z.to(parts.locs.dtype).unsqueeze(-1)
        return (z - parts.locs) / scales

    scales, family = parts.log_scales.exp(), parts.family
    if not target.integer:
        t = distance(target.to_z(target.inside(y)))
        return family.log_prob(t) - parts.log_scales - _log_support(target, parts.family, distance)
    low, high, open_low, open_high = whole_number_edges(target, y)
    ends = (flag.unsqueeze(-1).expand_as(parts.locs) for flag in (open_low, open_high))
    log_width = _log_width(target, y, high - low).to(parts.locs.dtype).unsqueeze(-1)
    return family.log_interval(distance(low), distance(high), log_width - parts.log_scales, *ends)


def whole_number_edges(
    target: NumberTarget, y: Float[Tensor, "rows"]
) -> tuple[Tensor, Tensor, Bool[Tensor, "rows"], Bool[Tensor, "rows"]]:
    """z(y − ½), z(y + ½), and whether each is an open end of the support."""
    k = target.inside(y)
    never = torch.zeros_like(k, dtype=torch.bool)
    open_low = never if target.lower is None else k <= target.lower
    open_high = never if target.upper is None else k >= target.upper
    low, high = torch.where(open_low, k, k - 0.5), torch.where(open_high, k, k + 0.5)
    return target.to_z(low), target.to_z(high), open_low, open_high


def _log_width(target: NumberTarget, y: Float[Tensor, "rows"], width: Tensor) -> Tensor:
    """log(z(y + ½) − z(y − ½)): from the slope of z where the difference would lose its digits."""
    slope = target.scale.log_derivative(target.inside(y)) - math.log(target.std)
    return torch.where(width < _LOST, slope, width.clamp(min=_LOST).log())


def _log_support(target: NumberTarget, family: Family, distance: object) -> Tensor | float:
    """log P(support) of each component, 0 without bounds; locations are inside the support."""
    assert callable(distance)
    match target.z_bounds:
        case None, None:
            return 0.0
        case lower, None:
            return family.log_cdf(-distance(lower))
        case None, upper:
            return family.log_cdf(distance(upper))
        case lower, upper:
            mass = family.cdf(distance(upper)) - family.cdf(distance(lower))
            return mass.clamp(min=1e-12).log()


@torch.no_grad()
def draw_targets(
    likelihood: ShapedLikelihood,
    outputs: Float[Tensor, "rows outputs"],
    noise: torch.Generator,
) -> Float[Tensor, "rows"]:
    """Return y ~ P(y | outputs) for each row, in the target's units."""
    parts = likelihood.parts(outputs)
    shares = torch.cat([parts.log_weights, parts.log_atoms], dim=-1).exp()
    scales = parts.log_scales.exp()
    return draw(likelihood.target, parts.family, parts.locs, scales, shares, noise)


def draw(  # noqa: PLR0917 - in the order of a mixture's fields
    target: NumberTarget,
    family: Family,
    locs: Float[Tensor, "*points components"],
    scales: Float[Tensor, "*points components"],
    shares: Float[Tensor, "*points parts"],
    noise: torch.Generator,
) -> Float[Tensor, "*points"]:
    """Return a value of the mixture of each point, in the target's units.

    Args:
        shares: the probabilities of the components, then of the target's atoms.
    """
    components = locs.shape[-1]
    chosen = torch.zeros(locs.shape[:-1], dtype=torch.int64, device=locs.device)
    if shares.shape[-1] > 1:
        each = torch.multinomial(shares.flatten(0, -2), 1, generator=noise)
        chosen = each.view(locs.shape[:-1])
    component = chosen.clamp_max(components - 1).unsqueeze(-1)
    loc, scale = (part.gather(-1, component).squeeze(-1) for part in (locs, scales))

    def latent() -> Tensor:
        return loc + scale * _standard(family, loc, noise)

    z = latent()
    if not target.integer:  # whole numbers take what is outside to their ends
        low, high = target.z_bounds
        for _ in range(_ROUNDS if target.is_bounded else 0):
            outside = torch.zeros_like(z, dtype=torch.bool)
            outside |= False if low is None else z < low
            outside |= False if high is None else z > high
            z = torch.where(outside, latent(), z)
    y = target.from_z(z.double())
    y = y.round() if target.integer else y
    if not target.atoms:
        return y
    atoms = y.new_tensor(target.atoms)
    number = (chosen - components).clamp_min(0)
    return torch.where(chosen >= components, atoms[number], y)


def _standard(family: Family, like: Float[Tensor, "*points"], noise: torch.Generator) -> Tensor:
    """A draw of the family for each point, at location 0 and scale 1."""
    if isinstance(family, Logistic):
        uniform = torch.rand(like.shape, generator=noise, device=like.device, dtype=like.dtype)
        return torch.logit(uniform, eps=1e-12)
    return torch.randn(like.shape, generator=noise, device=like.device, dtype=like.dtype)


_LOG_SCALES = Bounded(*map(math.log, (MIN_SCALE, *_SCALE_KNEES, MAX_SCALE)))
