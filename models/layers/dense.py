"""A dense layer as a description: it holds no weights and remembers no forward pass."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from models.layout import Weights

# Below the variance of any float32 product; keeps the square root's gradient finite at a unit
# whose variance is exactly 0 (all its inputs dead, its bias pruned).
_TINY = 1e-20


@dataclass(frozen=True)
class Dense:
    """y = x Wᵀ + b. The weight and bias of sample s produce sample s of the output."""

    name: str
    in_features: int
    out_features: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def bias(self) -> str:
        return f"{self.name}.bias"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""
        return {
            self.weight: (self.out_features, self.in_features),
            self.bias: (self.out_features,),
        }

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*samples batch inputs"]
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """One batched product; a sample axis on the weights, on `x` or on both broadcasts."""
        weight, bias = weights[self.weight], weights[self.bias]
        if weight.ndim == 2:
            return linear(x, weight, bias)
        if weight.ndim == 3:
            x = x.expand(len(weight), *x.shape[-2:])
            return torch.baddbmm(bias.unsqueeze(-2), x, weight.mT)
        return x @ weight.mT + bias.unsqueeze(-2)

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Float[Tensor, "*samples batch inputs"],
        noise: Float[Tensor, "*noise outputs"],
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Draws pre-activations N(xμ + b, x²σ² + σ_b²) instead of weights: exact for each row.

        Source: Kingma et al. 2015 (arXiv 1506.02557), eq. 6. The noise broadcasts against
        [..., batch, outputs]; mean and variance are computed once, shared by all its samples.
        """
        mean = linear(x, loc[self.weight], loc[self.bias])
        spread = linear(x.square(), variance[self.weight], variance[self.bias])
        return mean + spread.clamp_min(_TINY).sqrt() * noise
