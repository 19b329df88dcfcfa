"""The reparameterised weights of Bayes by Backprop, with a hand-written gradient.

On a CPU a step on a small mini-batch spends as much time on passes over the weights as on matrix
products. Autograd needs about thirty passes, these formulas fifteen. They are exact; tests compare
them with numerical derivatives in float64. They use torch's own operators: a fused kernel from
torch.compile was no faster (docs/benchmarks.md) and needs a compiler.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from models.posteriors.groups import Groups

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
