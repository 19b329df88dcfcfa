"""The mean-field Gaussian posterior q(w | θ) = Π N(w | loc, scale²), scale = softplus(rho).

Source: Blundell et al. 2015, Weight Uncertainty in Neural Networks (arXiv 1505.05424), §3.2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus

Weights = Mapping[str, Float[Tensor, "..."]]
"""Named weights; with a sample axis every tensor carries it in front."""

Mask = Mapping[str, Bool[Tensor, "..."]]
"""True where a weight is kept; a name that is absent is kept whole."""


def softplus_inverse(value: float) -> float:
    """rho with softplus(rho) = value, without overflow for large values."""
    return value + math.log(-math.expm1(-value))


@dataclass(frozen=True)
class MeanFieldNormal:
    """Independent Gaussians over named weights. Pruned weights are exactly 0, without variance."""

    loc: Weights
    rho: Weights
    mask: Mask = field(default_factory=dict)

    def __getitem__(self, name: str) -> tuple[Tensor, Tensor]:
        """loc and scale of one tensor, pruned weights set to zero."""
        loc, scale = self.loc[name], softplus(self.rho[name])
        if name not in self.mask:
            return loc, scale
        return loc * self.mask[name], scale * self.mask[name]

    @property
    def num_weights(self) -> int:
        """Weights that are not pruned."""
        return sum(
            int(self.mask[name].sum()) if name in self.mask else loc.numel()
            for name, loc in self.loc.items()
        )

    def parameters(self) -> list[Tensor]:
        """What an optimiser moves: every loc, then every rho."""
        return [*self.loc.values(), *self.rho.values()]

    def rsample(self, noise: Weights) -> dict[str, Tensor]:
        """w = loc + scale · noise; noise may carry a sample axis in front."""
        weights = {}
        for name in self.loc:
            loc, scale = self[name]
            weights[name] = loc + scale * noise[name]
        return weights

    def log_prob(self, weights: Weights) -> Float[Tensor, ""]:
        """log q(w) in nats, summed over all weights that are not pruned."""
        return sum((self._log_prob(name, weights[name]) for name in self.loc), torch.zeros(()))

    def _log_prob(self, name: str, value: Tensor) -> Tensor:
        scale = softplus(self.rho[name])
        z = (value - self.loc[name]) / scale
        log_prob = -0.5 * (z.square() + math.log(2 * math.pi)) - scale.log()
        return (log_prob * self.mask[name] if name in self.mask else log_prob).sum()

    def detach(self) -> "MeanFieldNormal":
        """A copy that shares nothing with the parameters an optimiser moves."""
        return MeanFieldNormal(
            {name: t.detach().clone() for name, t in self.loc.items()},
            {name: t.detach().clone() for name, t in self.rho.items()},
            dict(self.mask),
        )

    def to(self, device: str | torch.device) -> "MeanFieldNormal":
        """The same posterior on another device."""
        return MeanFieldNormal(
            *({name: t.to(device) for name, t in part.items()} for part in (self.loc, self.rho)),
            {name: t.to(device) for name, t in self.mask.items()},
        )
