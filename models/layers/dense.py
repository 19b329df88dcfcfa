"""A dense layer as a description without weights or state."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from models.layers.layer import Layer, gaussian_draw
from models.posteriors.layout import Weights

Batch = Float[Tensor, "*samples batch inputs"]
Outputs = Float[Tensor, "*samples2 batch outputs"]


def affine(
    x: Batch,
    weight: Float[Tensor, "*samples2 outputs inputs"],
    bias: Float[Tensor, "*samples2 outputs"],
) -> Float[Tensor, "*samples3 batch outputs"]:
    """Return x Wᵀ + b; the sample axis may be on the weights, on `x` or on both."""
    if weight.ndim == 2:
        return linear(x, weight, bias)
    if len(weight) == 1:  # a batched product of one sample would copy its gradient
        return linear(x, weight[0], bias[0]).view(1, -1, weight.shape[-2])
    return torch.baddbmm(bias.unsqueeze(-2), x.expand(len(weight), -1, -1), weight.mT)


def add_to_last(outputs: Outputs, added: Outputs) -> Outputs:
    """The outputs with `added`, of which there may be fewer, on the last ones."""
    first = outputs.shape[-1] - added.shape[-1]
    return torch.cat([outputs[..., :first], outputs[..., first:] + added], dim=-1)


@dataclass(frozen=True)
class Dense(Layer):
    """y = x Wᵀ + b. The weight and bias of sample s produce sample s of the output."""

    in_features: int
    out_features: int

    @property
    def fan_in(self) -> int:
        return self.in_features

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            self.weight: (self.out_features, self.in_features),
            self.bias: (self.out_features,),
        }

    def __call__(self, weights: Weights, x: Batch) -> Outputs:
        """Compute one batched product; the sample axis may be on the weights, on `x` or on both."""
        return affine(x, weights[self.weight], weights[self.bias])

    def moments(self, loc: Weights, variance: Weights, x: Batch) -> tuple[Outputs, Outputs]:
        """Mean xμ + b and variance x²σ² + σ_b² of the pre-activations: exact for each row.

        Members [M, …] of the weights read the same rows, or each rows of its own.
        """
        return self(loc, x), self(variance, x.square())

    def local(
        self, loc: Weights, variance: Weights, x: Batch, noise: Float[Tensor, "*noise outputs"]
    ) -> Outputs:
        """Draw pre-activations N(xμ + b, x²σ² + σ_b²) instead of weights.

        Args:
            noise: broadcasts against [..., batch, outputs]. Its samples share mean and variance,
                which are computed once.

        Source: Kingma et al. 2015 (arXiv 1506.02557), eq. 6.
        """
        return gaussian_draw(*self.moments(loc, variance, x), noise)
