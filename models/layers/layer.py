"""What all layers have: a name, from which those of their tensors follow, shapes, and draws."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

# Below the variance of any float32 product. Keeps the gradient of the square root finite for a unit
# of variance 0, whose inputs are all 0 and whose bias is pruned.
_TINY = 1e-20
_LARGE = 2**18  # values: 1 MiB in float32


@dataclass(frozen=True)
class Layer(ABC):
    """A description of named weight tensors, which holds none of them."""

    name: str

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def bias(self) -> str:
        return f"{self.name}.bias"

    @property
    @abstractmethod
    def fan_in(self) -> int:
        """Number of inputs of one output."""

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""


def gaussian_draw(mean: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
    """Return mean + √variance · noise: pre-activations drawn by local reparameterisation.

    Large ones have a gradient written by hand. Autograd needs nine passes over the pre-activations
    and their gradients, these formulas seven, one of them backward. That counts where the
    pre-activations are larger than the cache, as those of convolutions. Small ones are left to
    autograd, which calls no Python.
    """
    is_large = variance.numel() >= _LARGE and mean.shape == variance.shape == noise.shape
    if is_large and torch.is_grad_enabled() and variance.requires_grad:
        drawn: Tensor = _Draw.apply(mean, variance, noise)  # type: ignore[no-untyped-call]
        return drawn
    return mean + variance.clamp_min(_TINY).sqrt() * noise


class _Draw(Function):
    """∂/∂mean = g and ∂/∂variance = g · noise ÷ (2 √variance), 0 where the variance is 0."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, variance: Tensor, noise: Tensor) -> Tensor:
        rate = torch.threshold(variance, _TINY, math.inf).rsqrt_()  # 0 at a variance of 0
        ctx.save_for_backward(rate.mul_(noise).mul_(0.5))
        deviation = variance.clamp_min(_TINY).sqrt_()
        return deviation.mul_(noise).add_(mean)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_drawn: Tensor) -> tuple[Tensor, Tensor, None]:
        (slope,) = ctx.saved_tensors
        return by_drawn, by_drawn * slope, None
