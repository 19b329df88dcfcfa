"""Local reparameterisation for prediction: all samples in one matrix product per layer.

Pre-activations are drawn instead of weights, which is exact for each row (Kingma et al. 2015, arXiv
1506.02557, eq. 6). All samples share the first layer's products. Results are written into buffers
that stay in the processor's cache from chunk to chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import gelu, linear, silu

from models.layers.dense import Dense
from models.posteriors.layout import Weights
from models.prediction.noise import Noise

DEFAULT_MEMORY_BYTES = 256 * 2**20
# Buffers in the cache save one access to memory per activation, but matrix products need some
# hundred rows to reach full speed (docs/benchmarks.md has the measurement).
CACHE_BYTES = 12 * 2**20

IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "silu": lambda x: silu(x, inplace=True),
    "gelu": lambda x: x.copy_(gelu(x)),
}

Pair = Float[Tensor, "2 _ _"]
"""Inputs and their squares, or means and variances."""

Gaussian = tuple[Float[Tensor, "..."], Float[Tensor, "..."]]
"""Means and variances of independent units, (samples ×) rows × units."""


@runtime_checkable
class Layer(Protocol):
    """A dense layer given by the moments of its weights, with any kind of product."""

    @property
    def width(self) -> int: ...

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian: ...

    def into(self, x: Pair, out: Pair) -> None: ...

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian: ...


@dataclass(frozen=True)
class LayerMoments:
    """Means (first) and variances (second) of a dense layer's weights and biases.

    They are stacked so that one batched product multiplies both. For about a hundred rows this is
    faster than two products, each divided among the processor's cores.
    """

    weight: Float[Tensor, "2 outputs inputs"]
    bias: Float[Tensor, "2 1 outputs"]

    @classmethod
    def of(cls, layer: Dense, loc: Weights, variance: Weights) -> "LayerMoments":
        """Stack one layer's part of the network's moments; without a bias it is 0."""
        weight = torch.stack([loc[layer.weight], variance[layer.weight]])
        if not layer.biased:
            return cls(weight, weight.new_zeros(2, 1, layer.out_features))
        return cls(weight, torch.stack([loc[layer.bias], variance[layer.bias]]).unsqueeze(1))

    @property
    def loc(self) -> Float[Tensor, "outputs inputs"]:
        return self.weight[0]

    @property
    def variance(self) -> Float[Tensor, "outputs inputs"]:
        return self.weight[1]

    @property
    def width(self) -> int:
        return self.weight.shape[1]

    @cached_property
    def squared_loc(self) -> Float[Tensor, "outputs inputs"]:
        return self.loc.square()

    def __call__(self, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian:
        """Means and variances of the pre-activations of known inputs: N(xμ + b, x²σ² + σ_b²)."""
        return pre_activations(self, x)

    def into(self, x: Pair, out: Pair) -> None:
        """Write the pre-activations of inputs x[0] to `out`, and the inputs' squares to x[1]."""
        torch.mul(x[0], x[0], out=x[1])
        torch.baddbmm(self.bias, x, self.weight.mT, out=out)

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """Mean and variance of the outputs of independent inputs with this mean and variance."""
        second = variance + mean.square()
        spread = linear(second, self.variance, self.bias[1, 0])
        return linear(mean, self.loc, self.bias[0, 0]), spread + linear(variance, self.squared_loc)

    def select(
        self, inputs: Int[Tensor, "n"] | None, outputs: Int[Tensor, "m"] | None
    ) -> "LayerMoments":
        """The layer restricted to some inputs and outputs; None means all."""
        weight, bias = self.weight, self.bias
        if outputs is not None:
            weight, bias = weight[:, outputs], bias[:, :, outputs]
        if inputs is not None:
            weight = weight[:, :, inputs]
        return LayerMoments(weight.contiguous(), bias)


def pre_activations(layer: Layer, x: Float[Tensor, "*samples rows inputs"]) -> Gaussian:
    """Means and variances of the layer's pre-activations of known inputs, in new memory."""
    shape = (*x.shape[:-1], layer.width)
    flat = x.flatten(0, -2)
    pair = flat.new_empty(2, *flat.shape)
    pair[0] = flat
    out = flat.new_empty(2, len(flat), layer.width)
    layer.into(pair, out)
    return out[0].view(shape), out[1].view(shape)


class Scratch:
    """Buffers for the inputs and outputs of a layer, which every chunk reuses."""

    def __init__(self, pairs: int, width: int, like: Tensor) -> None:
        self._inputs, self._outputs = (like.new_empty(2 * pairs * width) for _ in range(2))

    def inputs(self, rows: int, width: int) -> Pair:
        return self._inputs[: 2 * rows * width].view(2, rows, width)

    def outputs(self, rows: int, width: int) -> Pair:
        return self._outputs[: 2 * rows * width].view(2, rows, width)


@dataclass(frozen=True)
class First:
    """What all samples share of a pass over some rows.

    Args:
        units: moments of the first layer's pre-activations, [1, rows, units].
        path: moments of what the linear path adds to the outputs, [1, rows, outputs].
    """

    units: Gaussian
    path: Gaussian | None = None


@dataclass(frozen=True)
class LocalNetwork:
    """The layers' moments and the activation between them.

    `skip` is a linear path from the inputs to the outputs, without bias.
    """

    layers: tuple[Layer, ...]
    activation: str
    skip: LayerMoments | None = None

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(layer.width for layer in self.layers)

    @property
    def max_width(self) -> int:
        return max(self.widths)

    @property
    def operations(self) -> int:
        """Operations per sample and row, without the first layer's, which all samples share."""
        return sum(4 * inputs * outputs for inputs, outputs in pairwise(self.widths))

    def first(self, x: Float[Tensor, "rows inputs"]) -> "First":
        """What is the same for all samples, computed once."""
        mean, variance = self.layers[0](x)
        path = None if self.skip is None else self.skip(x)
        units = mean.unsqueeze(0), variance.unsqueeze(0)
        return First(units, path and (path[0].unsqueeze(0), path[1].unsqueeze(0)))

    def outputs(self, first: "First", noise: Noise, scratch: Scratch) -> Gaussian:
        """Outputs given a draw of each hidden layer: [samples, rows, outputs].

        Args:
            first: the result of `first`.
            noise: standard normals for every layer.
            scratch: buffers to work in. They also hold the result: the next call overwrites it.
        """
        mean, variance = first.units
        if len(self.layers) == 1:
            return mean.expand(len(noise[-1]), -1, -1), variance.expand(len(noise[-1]), -1, -1)
        for layer, block in zip(self.layers[1:], noise, strict=False):
            mean, variance = self._next(layer, mean, variance, block, scratch)
        if first.path is not None:
            mean.add_(first.path[0])
            variance.add_(first.path[1])
        return mean, variance

    def _next(
        self, layer: Layer, mean: Tensor, variance: Tensor, noise: Tensor, scratch: Scratch
    ) -> Gaussian:
        """Draw this layer's inputs and return the moments of its outputs."""
        samples, rows, units = len(noise), *mean.shape[1:]
        x = scratch.inputs(samples * rows, units)
        hidden = x[0].view(samples, rows, units)
        scale = variance.sqrt() if len(variance) == 1 else variance.sqrt_()
        torch.addcmul(mean, scale, noise.unsqueeze(1), out=hidden)
        IN_PLACE[self.activation](hidden)
        out = scratch.outputs(samples * rows, layer.width)
        layer.into(x, out)
        return out[0].view(samples, rows, -1), out[1].view(samples, rows, -1)
