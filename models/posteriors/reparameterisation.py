"""The reparameterised weights of Bayes by Backprop, with a hand-written gradient.

On a CPU a step on a small mini-batch spends as much time on passes over the weights as on matrix
products. Autograd needs about thirty passes, these formulas fifteen. They are exact; tests compare
them with numerical derivatives in float64. They use torch's own operators: a fused kernel from
torch.compile was no faster (docs/benchmarks.md) and needs a compiler.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

Vector = Float[Tensor, "weights"]
Scalar = Float[Tensor, ""]


@dataclass(frozen=True)
class Reparameterised:
    """Values of N(w | μ, σ²), σ = softplus(ρ), that one step needs, differentiable in (μ, ρ).

    first: the drawn weights μ + σ·noise, or μ without noise.
    variance: σ² if no weights were drawn, else None.
    scale: σ; 1 for a pruned weight.
    squares: Σ(μ² + σ²) of each slice. log_scale: Σ log σ. The KL to a Gaussian follows from both.
    """

    first: Vector
    variance: Vector | None
    scale: Vector
    squares: Float[Tensor, "slices"]
    log_scale: Scalar


def reparameterise(
    loc: Vector,
    rho: Vector,
    noise: Vector | None,
    sizes: Sequence[int],
    mask: Bool[Tensor, "weights"] | None = None,
) -> Reparameterised:
    """Return drawn weights (with noise) or their moments (without), and sums over slices.

    Args:
        sizes: lengths of the consecutive slices of the weight vector that `squares` sums over.
        mask: False for pruned weights, which are 0 without variance and do not count.
    """
    results = _Reparameterise.apply(loc, rho, noise, list(sizes), mask)  # type: ignore[no-untyped-call]
    return Reparameterised(*results)


class _Reparameterise(Function):
    """Computes σ = −log sigmoid(−ρ), which keeps the exponential that its gradient needs."""

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        loc: Tensor,
        rho: Tensor,
        noise: Tensor | None,
        sizes: list[int],
        mask: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        ctx.sizes, negative = sizes, -rho
        scale, exponential = torch.ops.aten.log_sigmoid_forward(negative)
        scale.neg_()
        spread = scale
        if mask is not None:  # log 1 = 0: no contribution to `log_scale`
            loc, spread, scale = loc * mask, scale * mask, scale.where(mask, 1.0)
        ctx.save_for_backward(loc, scale, noise, mask, negative, exponential)
        by_slice = [[p.dot(p) for p in vector.split_with_sizes(sizes)] for vector in (loc, spread)]
        squares = torch.stack(by_slice[0]) + torch.stack(by_slice[1])
        first = loc.view_as(loc) if noise is None else torch.addcmul(loc, scale, noise)
        variance = scale.square() if noise is None else None
        if mask is not None:  # the end of `backward` masks the gradient
            first = first * mask
            variance = None if variance is None else variance * mask
        return first, variance, scale, squares, scale.log().sum()

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
        """Return the gradients; with q = ∂/∂squares of a slice and l = ∂/∂log_scale:

        ∂/∂μ = ∂/∂first + 2qμ
        ∂/∂σ = ∂/∂σ + l/σ + 2σ · ∂/∂variance + noise · ∂/∂first + 2qσ
        ∂/∂ρ = ∂/∂σ · sigmoid(ρ)
        """
        loc, scale, noise, mask, negative, exponential = ctx.saved_tensors
        by_loc = torch.zeros_like(loc) if by_first is None else by_first.clone()
        by_sigma = torch.zeros_like(scale) if by_log is None else by_log / scale
        if by_scale is not None:
            by_sigma += by_scale
        if by_variance is not None:
            by_sigma.addcmul_(scale, by_variance, value=2)
        if noise is not None and by_first is not None:
            by_sigma.addcmul_(by_first, noise)
        if by_squares is not None:
            parts = (v.split_with_sizes(ctx.sizes) for v in (loc, scale, by_loc, by_sigma))
            for q, m, s, out_m, out_s in zip(by_squares.tolist(), *parts, strict=True):
                out_m.add_(m, alpha=2 * q)
                out_s.add_(s, alpha=2 * q)
        by_rho = torch.ops.aten.log_sigmoid_backward(by_sigma, negative, exponential)
        if mask is not None:
            by_loc, by_rho = by_loc * mask, by_rho * mask
        return by_loc, by_rho, None, None, None
