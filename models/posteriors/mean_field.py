"""The mean-field Gaussian posterior q(w | θ) = Π N(w | loc, scale²), scale = softplus(rho).

Source: Blundell et al. 2015, Weight Uncertainty in Neural Networks (arXiv 1505.05424), §3.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus

from models.posteriors.groups import Groups
from models.tensors import TensorRecord


def softplus_inverse(value: float) -> float:
    """Return rho with softplus(rho) = value, without overflow for large values."""
    return value + math.log(-math.expm1(-value))


@dataclass(frozen=True)
class DiagonalNormal:
    """Independent Gaussians over a weight vector. A weight is pruned where `mask` is False.

    A pruned weight is exactly 0, without variance, and does not count in densities.
    """

    loc: Float[Tensor, "weights"]
    scale: Float[Tensor, "weights"]
    mask: Bool[Tensor, "weights"] | None = None

    @property
    def num_weights(self) -> int:
        """Number of weights that are not pruned."""
        return self.loc.numel() if self.mask is None else int(self.mask.sum())

    def sums(self, groups: Groups) -> tuple[Float[Tensor, "groups"], Float[Tensor, "parts"]]:
        """Return Σ(μ² + σ²) of each group, and Σ log σ of each part of the vector."""
        squares = self.kept(self.loc.square() + self.scale.square())
        return groups.sums(squares), groups.totals(self.kept(self.scale.log()))

    def parts(self, sizes: Sequence[int]) -> list["DiagonalNormal"]:
        """Split into the distributions of consecutive slices of these sizes."""
        masks = [None] * len(sizes) if self.mask is None else self.mask.split(list(sizes))
        pairs = zip(self.loc.split(list(sizes)), self.scale.split(list(sizes)), masks, strict=True)
        return [DiagonalNormal(*each) for each in pairs]

    def moments(self) -> tuple[Float[Tensor, "weights"], Float[Tensor, "weights"]]:
        """Mean and variance of each weight; both are 0 for a pruned weight."""
        return self.kept(self.loc), self.kept(self.scale.square())

    def rsample(
        self, noise: Float[Tensor, "*samples weights"]
    ) -> Float[Tensor, "*samples weights"]:
        """w = loc + scale · noise, differentiable in loc and scale."""
        return self.kept(self.loc + self.scale * noise)

    def log_prob(self, weights: Float[Tensor, "*samples weights"]) -> Float[Tensor, "*samples"]:
        """log q(w) in nats, summed over the weights that are not pruned."""
        z = (weights - self.loc) / self.scale
        return self.kept(-0.5 * (z.square() + math.log(2 * math.pi)) - self.scale.log()).sum(-1)

    def kept(self, values: Float[Tensor, "*samples weights"]) -> Float[Tensor, "*samples weights"]:
        """Return the values with 0 for pruned weights."""
        return values if self.mask is None else values * self.mask


@dataclass(frozen=True)
class MeanFieldNormal(TensorRecord):
    """The variational parameters θ = (loc, rho) of a `DiagonalNormal`, for an optimiser."""

    loc: Float[Tensor, "weights"]
    rho: Float[Tensor, "weights"]
    mask: Bool[Tensor, "weights"] | None = None

    def distribution(self) -> DiagonalNormal:
        """q(w | θ) with scale = log(1 + exp(rho)), computed without overflow."""
        return DiagonalNormal(self.loc, softplus(self.rho), self.mask)

    @property
    def num_weights(self) -> int:
        """Number of weights that are not pruned."""
        return self.loc.numel() if self.mask is None else int(self.mask.sum())
