"""The mean-field Gaussian posterior q(w | θ) = Π N(w | loc, scale²), scale = softplus(rho).

Its reparameterised weights have a hand-written gradient. On a CPU a step on a small mini-batch
spends as much time on passes over the weights as on matrix products. Autograd needs about thirty
passes, these formulas fifteen. They are exact; tests compare them with numerical derivatives in
float64. They use torch's own operators: a fused kernel from torch.compile was no faster
(docs/benchmarks.md) and needs a compiler.
Source: Blundell et al. 2015, Weight Uncertainty in Neural Networks (arXiv 1505.05424), §3.2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

from models.posteriors.weight_groups import Groups
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

    def mapped(self, change: Callable[[Tensor], Tensor]) -> "MeanFieldNormal":
        """The same change of loc, rho and mask."""
        mask = None if self.mask is None else change(self.mask)
        return MeanFieldNormal(change(self.loc), change(self.rho), mask)

    @classmethod
    def joined(cls, posteriors: Sequence["MeanFieldNormal"]) -> "MeanFieldNormal":
        """The weights of all, one after the other; a mask of one becomes a mask of all."""
        loc, rho = (torch.cat([getattr(q, name) for q in posteriors]) for name in ("loc", "rho"))
        if all(q.mask is None for q in posteriors):
            return cls(loc, rho)
        masks = [torch.ones_like(q.loc).bool() if q.mask is None else q.mask for q in posteriors]
        return cls(loc, rho, torch.cat(masks))

    @property
    def num_weights(self) -> int:
        """Number of weights that are not pruned."""
        return self.loc.numel() if self.mask is None else int(self.mask.sum())


Vector = Float[Tensor, "weights"]


@dataclass(frozen=True)
class Reparameterised:
    """Values of N(w | μ, σ²), σ = softplus(ρ), that one step needs, differentiable in (μ, ρ).

    first: the drawn weights μ + σ·noise, or μ without noise.
    variance: σ² if no weights were drawn, else None.
    scale: σ; 1 for a pruned weight.
    squares: Σ(μ² + σ²) of each group. log_scale: Σ log σ of each part. The KL to a Gaussian follows
    from both.
    """

    first: Vector
    variance: Vector | None
    scale: Vector
    squares: Float[Tensor, "groups"]
    log_scale: Float[Tensor, "parts"]


def reparameterise(
    loc: Vector,
    rho: Vector,
    noise: Vector | None,
    groups: Groups,
    mask: Bool[Tensor, "weights"] | None = None,
) -> Reparameterised:
    """Return drawn weights (with noise) or their moments (without), and sums over groups.

    Args:
        groups: the groups of weights that `squares` sums over, in parts for `log_scale`.
        mask: False for pruned weights, which are 0 without variance and do not count.
    """
    results = _Reparameterise.apply(loc, rho, noise, groups, mask)  # type: ignore[no-untyped-call]
    return Reparameterised(*results)


class _Reparameterise(Function):
    """Computes σ = −log sigmoid(−ρ), which keeps the exponential that its gradient needs."""

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        loc: Tensor,
        rho: Tensor,
        noise: Tensor | None,
        groups: Groups,
        mask: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        ctx.groups, negative = groups, -rho
        scale, exponential = torch.ops.aten.log_sigmoid_forward(negative)
        scale.neg_()
        spread = scale
        if mask is not None:  # log 1 = 0: no contribution to `log_scale`
            loc, spread, scale = loc * mask, scale * mask, scale.where(mask, 1.0)
        ctx.save_for_backward(loc, scale, noise, mask, negative, exponential)
        squares = groups.square_sums(loc) + groups.square_sums(spread)
        first = loc.view_as(loc) if noise is None else torch.addcmul(loc, scale, noise)
        variance = scale.square() if noise is None else None
        if mask is not None:  # the end of `backward` masks the gradient
            first = first * mask
            variance = None if variance is None else variance * mask
        return first, variance, scale, squares, groups.totals(scale.log())

    @staticmethod
    @once_differentiable
    def backward(  # noqa: PLR0917
        ctx: Any,
        by_first: Tensor | None,
        by_variance: Tensor | None,
        by_scale: Tensor | None,
        by_squares: Tensor | None,
        by_log: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients; q = ∂/∂squares of a weight's group, l = ∂/∂log_scale of its part:

        ∂/∂μ = ∂/∂first + 2qμ
        ∂/∂σ = ∂/∂σ + l/σ + 2σ · ∂/∂variance + noise · ∂/∂first + 2qσ
        ∂/∂ρ = ∂/∂σ · sigmoid(ρ)
        """
        loc, scale, noise, mask, negative, exponential = ctx.saved_tensors
        by_sigma = torch.zeros_like(scale) if by_log is None else torch.empty_like(scale)
        if by_log is not None:
            sizes = ctx.groups.part_sizes
            for part, one, sigma in zip(
                by_sigma.split(sizes), by_log, scale.split(sizes), strict=True
            ):
                torch.div(one, sigma, out=part)
        if by_scale is not None:
            by_sigma += by_scale
        if by_variance is not None:
            by_sigma.addcmul_(scale, by_variance, value=2)
        if noise is not None and by_first is not None:
            by_sigma.addcmul_(by_first, noise)
        by_loc = torch.zeros_like(loc) if by_first is None else by_first
        if by_squares is not None:
            known, by_loc = by_loc, torch.empty_like(loc)  # autograd's gradient is not written to
            views = map(ctx.groups.views, (loc, scale, known, by_loc, by_sigma))
            by_group = ctx.groups.views_of_groups(2 * by_squares)
            for q, m, s, given, out_m, out_s in zip(by_group, *views, strict=True):
                torch.addcmul(given, m, q, out=out_m)
                out_s.addcmul_(s, q)
        by_rho = torch.ops.aten.log_sigmoid_backward(by_sigma, negative, exponential)
        if mask is not None:
            by_loc, by_rho = by_loc * mask, by_rho * mask
        return by_loc, by_rho, None, None, None
