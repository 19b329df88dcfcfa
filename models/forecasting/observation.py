"""How a value of a series follows from the latent u that is forecast: y = clip(round(g⁻¹(u))).

g is a monotone scale. Rounding is for whole numbers, clipping for bounds. u is Gaussian given the
past, so that a bound, and each whole number, has the probability of the u that it stands for: of
densities this is the censored model of Tobin 1958 ("Estimation of relationships for limited
dependent variables", Econometrica 26). Models read u = g(y), and of `CountScale` its scores.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor
from torch.special import ndtr

from models.config.ranges import Flag, Number
from models.count_scale import CountScale
from models.features.scales import IdentityScale, LogScale, Scale
from models.features.targets import NumberTarget
from models.likelihoods.families import Normal
from models.likelihoods.number_mixture import NumberMixture

PerStep = Float64[Tensor, "paths steps"]
Latent = Float64[Tensor, "*shape"]

_FAR = 8.0  # deviations: the probability beyond is below 1e-15
_NEAR = 5.0  # deviations of all paths that give the range of moments, which is widened threefold
_LARGEST = 1e290


@dataclass(frozen=True)
class Observation:
    """The scale g and the support of a series.

    Args:
        lower, upper: bounds, included; None if there is none.
        integer: whether only whole numbers occur.
    """

    scale: Scale = field(default_factory=IdentityScale)
    lower: Number | None = None
    upper: Number | None = None
    integer: Flag = False

    @property
    def is_identity(self) -> bool:
        return isinstance(self.scale, IdentityScale)

    @property
    def is_plain(self) -> bool:
        """Whether y = u, for every u."""
        return self.is_identity and not self.integer and self.lower is None and self.upper is None

    @property
    def is_log(self) -> bool:
        """Whether y = e^u, for every u."""
        has_support = self.integer or self.lower is not None or self.upper is not None
        return self.needs_positive and not has_support

    @property
    def needs_positive(self) -> bool:
        """Whether values of 0 and less have no u."""
        return isinstance(self.scale, LogScale) and self.scale.lower == self.scale.offset

    def read(self, y: np.ndarray) -> np.ndarray:
        """u of values, NaN where they are missing; values outside the support count as its ends."""
        values = torch.from_numpy(y.astype(np.float64))
        return y if self.is_plain else self.to_latent(values).numpy()

    def to_latent(self, y: Latent) -> Latent:
        inside = self.target.inside(y)
        if isinstance(self.scale, CountScale):
            return self.scale.represent(inside)
        return self.scale(inside)

    def observe(self, u: Latent) -> Latent:
        """y of any u, within the support."""
        return self.target.observed(u)

    def seen(self, u: Latent) -> Latent:
        """u as it is read once its value is observed, which is what a model learned from."""
        return u if self.is_plain or self.is_log else self.to_latent(self.observe(u))

    def mixture(self, means: PerStep, variances: PerStep) -> NumberMixture:
        """The mixture for y of Gaussians of u, each a sample.

        Bounds that no sample reaches are left out, which is far faster.
        """
        scales = variances.sqrt()
        if self._is_free(means, scales):
            return NumberMixture.gaussian(means, variances)
        target = self._of_paths(means, scales)
        locs, deviations = means.unsqueeze(1), scales.unsqueeze(1)
        atoms = locs[:, :0]  # whole numbers have the probabilities of intervals, open at the ends
        if not self.integer:  # a bound has the probability of all u beyond it
            low, high = target.z_bounds
            below = [] if low is None else [ndtr((low - locs) / deviations)]
            above = [] if high is None else [ndtr((locs - high) / deviations)]
            atoms = torch.cat([*below, *above, atoms], 1)
        weights = torch.ones_like(locs) - atoms.sum(1, keepdim=True)
        return NumberMixture(target, Normal(), locs, deviations, weights.clamp(min=0), atoms)

    def _is_free(self, means: PerStep, scales: PerStep) -> bool:
        if not self.is_identity or self.integer:
            return False
        low, high = means - _FAR * scales, means + _FAR * scales
        return not (
            (self.lower is not None and bool((low < self.lower).any()))
            or (self.upper is not None and bool((high > self.upper).any()))
        )

    @cached_property
    def target(self) -> NumberTarget:
        """The target whose z is u."""
        low, high, whole = self.lower, self.upper, self.integer
        return NumberTarget(0.0, 1.0, scale=self.scale, lower=low, upper=high, integer=whole)

    def _of_paths(self, means: PerStep, scales: PerStep) -> NumberTarget:
        """The target with the range of the paths: moments count values far beyond as its ends."""
        low, high = (means - _NEAR * scales).amin(), (means + _NEAR * scales).amax()
        ends = torch.stack([low, high]).nan_to_num(0.0, _LARGEST, -_LARGEST)
        first, last = self.scale(self.target.from_z(ends.clamp(-_LARGEST, _LARGEST))).tolist()
        bounds = () if self.integer else (self.lower, self.upper)
        atoms = tuple(bound for bound in bounds if bound is not None)
        return replace(self.target, atoms=atoms, z_range=(first, last))


PLAIN = Observation()
