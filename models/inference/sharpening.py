"""Posterior sharpening: the weights drawn for a window of text are shifted by its gradient.

    φ ~ q(φ) = N(μ, σ²);   θ ~ N(φ − η ∘ g, σ0²),   g = ∇_φ of the window's mean loss per token

With the hierarchical prior θ ~ N(φ, σ0²) each window adds to the objective

    KL(N(φ − η∘g, σ0²) ‖ N(φ, σ0²)) = ‖η∘g‖² / (2σ0²)

η is learned, one rate per weight. g is treated as a constant in the gradient, because its
derivative would need second derivatives of the network. Predictions draw φ, because their texts
have no targets to compute g from.
Source: Fortunato et al. 2017 (arXiv 1704.02798), §4, where g is the gradient of the sum over a
mini-batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.method import Draw

# Chosen on PTB, where weights have σ = 0.005: a shift within that noise adds almost nothing.
SIGMA0 = 0.02
INITIAL_RATE = 0.1  # a clipped gradient of norm 0.25 then shifts the weight vector by 0.025


@dataclass(frozen=True)
class SharpenedState(BBBState):
    """A variational posterior, and the rate at which each weight follows a window's gradient."""

    rates: Float[Tensor, "weights"]

    def parameters(self) -> list[Tensor]:
        return [*super().parameters(), self.rates]

    def pack(self) -> dict[str, Tensor]:
        return {**super().pack(), "rates": self.rates.detach().cpu()}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "SharpenedState":
        own = {name: value for name, value in tensors.items() if name != "rates"}
        return _with_rates(BBBState.unpack(own, num_weights), tensors["rates"])

    def unsharpened(self) -> BBBState:
        """The state for predictions, q(φ)."""
        return BBBState(self.posterior, self.point)


def _with_rates(state: BBBState, rates: Tensor) -> SharpenedState:
    return SharpenedState(state.posterior, state.point, rates)


@dataclass(frozen=True)
class Sharpened(BayesByBackprop):
    """Bayes by Backprop for windows of text, with sharpened draws."""

    @property
    def num_parameters(self) -> int:
        """A loc, a rho and a rate for each weight."""
        return 3 * self.layout.num_weights

    def init(self, generator: torch.Generator) -> SharpenedState:
        return self.begin(super().init(generator))

    def begin(self, state: BBBState) -> SharpenedState:
        """Add initial rates to the state of a posterior."""
        return _with_rates(state, torch.full_like(state.posterior.loc.detach(), INITIAL_RATE))

    def sharpen(
        self,
        state: SharpenedState,
        draw: Draw,
        loss_of: Callable[[Draw], Tensor],
        generator: torch.Generator,
    ) -> Draw:
        """Return θ for a drawn φ; its `local` term is the window's divergence in nats.

        Args:
            loss_of: the mean −log p of the window's targets, given a draw.
        """
        phi = self.layout.flatten(draw.weights)
        probe = phi.detach().requires_grad_()
        weights = self.layout.unflatten(probe)
        (gradient,) = torch.autograd.grad(loss_of(replace(draw, weights=weights)), probe)
        shift = state.posterior.distribution().kept(state.rates * gradient)
        noise = torch.empty_like(gradient).normal_(generator=generator)
        noise = state.posterior.distribution().kept(noise)
        local = shift.square().sum() / (2 * SIGMA0**2)
        theta = phi - shift + SIGMA0 * noise
        return replace(draw, weights=self.layout.unflatten(theta), local=local)
