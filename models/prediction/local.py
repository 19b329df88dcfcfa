"""Local reparameterisation for prediction: all samples in one matrix product per layer.

Pre-activations are drawn instead of weights, which is exact for each row (Kingma et al. 2015, arXiv
1506.02557, eq. 6). No weights are drawn, the first layer's products are shared by all samples,
results are written into buffers that stay in the processor's cache from chunk to chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import gelu, linear, silu

from models.layers.dense import Dense
from models.layout import Weights
from models.prediction.noise import Noise

IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "silu": lambda x: silu(x, inplace=True),
    "gelu": lambda x: x.copy_(gelu(x)),
}

Gaussian = tuple[Float[Tensor, "..."], Float[Tensor, "..."]]
"""Means and variances of independent units, (samples ×) rows × units."""


@runtime_checkable
class Layer(Protocol):
    """A dense layer whose weights are known by their moments, however it multiplies."""

    @property
    def width(self) -> int: ...

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian: ...

    def into(self, x: Float[Tensor, "rows inputs"], mean: Tensor, variance: Tensor) -> None: ...

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian: ...


@dataclass(frozen=True)
class LayerMoments:
    """Mean and variance of each weight and bias of a dense layer."""

    loc: Float[Tensor, "outputs inputs"]
    loc_bias: Float[Tensor, "outputs"]
    variance: Float[Tensor, "outputs inputs"]
    variance_bias: Float[Tensor, "outputs"]

    @classmethod
    def of(cls, layer: Dense, loc: Weights, variance: Weights) -> "LayerMoments":
        """This layer's part of the network's moments."""
        mean, spread = (loc[layer.weight], loc[layer.bias]), variance[layer.weight]
        return cls(*mean, spread, variance[layer.bias])

    @property
    def width(self) -> int:
        return len(self.loc)

    @cached_property
    def squared_loc(self) -> Float[Tensor, "outputs inputs"]:
        return self.loc.square()

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian:
        """Pre-activations of given inputs: N(xμ + b, x²σ² + σ_b²)."""
        mean = linear(x, self.loc, self.loc_bias)
        return mean, linear(x.square(), self.variance, self.variance_bias)

    def into(self, x: Float[Tensor, "rows inputs"], mean: Tensor, variance: Tensor) -> None:
        """The same, written into [rows, outputs] buffers; `x` is squared in place."""
        torch.addmm(self.loc_bias, x, self.loc.mT, out=mean)
        torch.addmm(self.variance_bias, x.square_(), self.variance.mT, out=variance)

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """Mean and variance of the outputs when the inputs are uncertain and independent."""
        second = variance + mean.square()
        spread = linear(second, self.variance, self.variance_bias)
        return linear(mean, self.loc, self.loc_bias), spread + linear(variance, self.squared_loc)

    def select(
        self, inputs: Int[Tensor, "n"] | None, outputs: Int[Tensor, "m"] | None
    ) -> "LayerMoments":
        """The layer between some of its inputs and some of its outputs; None stands for all."""
        parts = (self.loc, self.loc_bias, self.variance, self.variance_bias)
        if outputs is not None:
            loc, loc_bias, variance, variance_bias = (part[outputs] for part in parts)
            parts = (loc, loc_bias, variance, variance_bias)
        loc, loc_bias, variance, variance_bias = parts
        if inputs is not None:
            loc, variance = loc[:, inputs].contiguous(), variance[:, inputs].contiguous()
        return LayerMoments(loc, loc_bias, variance, variance_bias)


class Scratch:
    """Three buffers for [pairs, width] activations, used again by every chunk."""

    def __init__(self, pairs: int, width: int, like: Tensor) -> None:
        self._buffers = [like.new_empty(pairs * width) for _ in range(3)]

    def views(self, samples: int, rows: int, width: int) -> list[Tensor]:
        """The buffers' beginnings as [samples, rows, width]."""
        size = samples * rows * width
        return [buffer[:size].view(samples, rows, width) for buffer in self._buffers]


@dataclass(frozen=True)
class LocalNetwork:
    """The layers' moments and the activation between them."""

    layers: tuple[Layer, ...]
    activation: str

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(layer.width for layer in self.layers)

    @property
    def max_width(self) -> int:
        return max(self.widths)

    def first(self, x: Float[Tensor, "rows inputs"]) -> Gaussian:
        """The first layer's pre-activations, [1, rows, units]: alike for all samples."""
        mean, variance = self.layers[0](x)
        return mean.unsqueeze(0), variance.unsqueeze(0)

    def outputs(self, first: Gaussian, noise: Noise, scratch: Scratch | None = None) -> Gaussian:
        """Outputs given a draw of each hidden layer: [samples, rows, outputs].

        Args:
            first: from `first`.
            noise: standard normals for every layer.
            scratch: buffers to work in; None takes fresh memory, which is faster for a few rows.
        """
        mean, variance = first
        if len(self.layers) == 1:
            return mean.expand(len(noise[-1]), -1, -1), variance.expand(len(noise[-1]), -1, -1)
        for layer, block in zip(self.layers[1:], noise, strict=False):
            mean, variance = self._next(layer, mean, variance, block, scratch)
        return (mean, variance) if scratch is None else (mean.clone(), variance.clone())

    def _next(
        self,
        layer: Layer,
        mean: Tensor,
        variance: Tensor,
        noise: Tensor,
        scratch: Scratch | None,
    ) -> Gaussian:
        """Draw this layer's inputs, and give the Gaussian of its outputs."""
        activate = IN_PLACE[self.activation]
        if scratch is None:
            return layer(activate(torch.addcmul(mean, variance.sqrt(), noise.unsqueeze(1))))
        samples, rows = len(noise), mean.shape[1]
        hidden = scratch.views(samples, rows, mean.shape[2])[0]
        scale = variance.sqrt() if len(variance) == 1 else variance.sqrt_()
        torch.addcmul(mean, scale, noise.unsqueeze(1), out=hidden)
        activate(hidden)
        _, mean, variance = scratch.views(samples, rows, layer.width)
        layer.into(hidden.flatten(0, 1), mean.flatten(0, 1), variance.flatten(0, 1))
        return mean, variance
