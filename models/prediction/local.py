"""Local reparameterisation for prediction: samples and members in one matrix product per layer.

Pre-activations are drawn instead of weights, which is exact for each row (Kingma et al. 2015, arXiv
1506.02557, eq. 6). Networks of equal shape are stacked along a member axis; a single network is a
member axis of one. All samples share the first layer's products. Results are written into buffers
that stay in the processor's cache from chunk to chunk.

Moments go through the same layers without samples. Source of that propagation: Wu et al. 2019,
Deterministic Variational Inference (arXiv 1810.03958).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import gelu, silu
from torch.special import ndtr

from models.inference.noise import Noise
from models.layers.dense import Dense, add_to_last
from models.networks import ACTIVATIONS
from models.posteriors.layout import Weights

IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "silu": lambda x: silu(x, inplace=True),
    "gelu": lambda x: x.copy_(gelu(x)),
}

Pair = Float[Tensor, "members 2 rows _"]
"""Inputs and their squares, or means and variances; contiguous."""

Gaussian = tuple[Float[Tensor, "members ..."], Float[Tensor, "members ..."]]
"""Means and variances of independent units, members × (samples ×) rows × units."""

Units = Int[Tensor, "_"] | None
"""Numbers of the units that matter; None means all."""


@runtime_checkable
class Layer(Protocol):
    """A dense layer of each member, given by the moments of its weights, by any kind of product."""

    @property
    def width(self) -> int: ...

    @property
    def num_weights(self) -> int:
        """Of one member, without biases."""
        ...

    def into(self, x: Pair, out: Pair) -> None: ...

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian: ...


@dataclass(frozen=True)
class LayerMoments:
    """Means (first) and variances (second) of the weights and biases of each member's layer.

    They are stacked so that one batched product multiplies all. For about a hundred rows this is
    faster than two products, each divided among the processor's cores.
    """

    weight: Float[Tensor, "members 2 outputs inputs"]
    bias: Float[Tensor, "members 2 1 outputs"]

    @classmethod
    def of(cls, layer: Dense, loc: Weights, variance: Weights) -> "LayerMoments":
        """Stack one layer's part of a network's moments."""
        weight = torch.stack([loc[layer.weight], variance[layer.weight]]).unsqueeze(0)
        bias = torch.stack([loc[layer.bias], variance[layer.bias]])
        return cls(weight, bias.view(1, 2, 1, -1))

    @classmethod
    def stacked(cls, layers: Sequence["LayerMoments"]) -> "LayerMoments":
        """The same layer of several members."""
        weight, bias = (
            torch.cat([getattr(layer, k) for layer in layers]) for k in ("weight", "bias")
        )
        return cls(weight, bias)

    def member(self, number: int) -> "LayerMoments":
        """The layer of one member, on the same memory."""
        place = slice(number, number + 1)
        return LayerMoments(self.weight[place], self.bias[place])

    @property
    def loc(self) -> Float[Tensor, "members outputs inputs"]:
        return self.weight[:, 0]

    @property
    def variance(self) -> Float[Tensor, "members outputs inputs"]:
        return self.weight[:, 1]

    @property
    def width(self) -> int:
        return self.weight.shape[2]

    @property
    def num_weights(self) -> int:
        return self.weight.shape[2] * self.weight.shape[3]

    @cached_property
    def squared_loc(self) -> Float[Tensor, "members outputs inputs"]:
        return self.loc.square()

    def into(self, x: Pair, out: Pair) -> None:
        """Write the pre-activations of known inputs to `out`: N(xμ + b, x²σ² + σ_b²).

        Args:
            x: the inputs first; their squares are written beside them.
        """
        torch.mul(x[:, 0], x[:, 0], out=x[:, 1])
        weight, bias = self.weight.flatten(0, 1), self.bias.flatten(0, 1)
        torch.baddbmm(bias, x.flatten(0, 1), weight.mT, out=out.flatten(0, 1))

    def of_gaussian(self, mean: Tensor, variance: Tensor) -> Gaussian:
        """Moments of the outputs of independent inputs with these moments, each members × rows."""
        second, bias = variance + mean.square(), self.bias
        spread = torch.baddbmm(bias[:, 1], second, self.variance.mT)
        spread += variance @ self.squared_loc.mT
        return torch.baddbmm(bias[:, 0], mean, self.loc.mT), spread

    def select(self, inputs: Units, outputs: Units) -> "LayerMoments":
        """The layer restricted to some inputs and outputs."""
        weight, bias = self.weight, self.bias
        if outputs is not None:
            weight, bias = weight[:, :, outputs], bias[..., outputs]
        if inputs is not None:
            weight = weight[..., inputs]
        return LayerMoments(weight.contiguous(), bias)


class Scratch:
    """Buffers for the inputs and outputs of a layer, which every chunk reuses."""

    def __init__(self, rows: int, width: int, like: Tensor) -> None:
        self._inputs, self._outputs = (like.new_empty(2 * rows * width) for _ in range(2))

    def inputs(self, members: int, rows: int, width: int) -> Pair:
        return self._inputs[: 2 * members * rows * width].view(members, 2, rows, width)

    def outputs(self, members: int, rows: int, width: int) -> Pair:
        return self._outputs[: 2 * members * rows * width].view(members, 2, rows, width)


@dataclass(frozen=True)
class First:
    """What all samples share of a pass over some rows.

    Args:
        units: moments of the first layer's pre-activations, members × rows × units.
        path: moments of what the linear path adds to the last outputs, members × rows × outputs.
    """

    units: Gaussian
    path: Gaussian | None


@dataclass(frozen=True)
class Networks:
    """Networks of equal shape that follow each other among the members of a posterior.

    Args:
        path: a linear path from the inputs to the last outputs.
        widths: normals that a whole network needs per sample, layer by layer.
        live: the units that remain in each layer after pruning; None means all of all layers.
        reads: the inputs that the networks read; None means all.
    """

    layers: tuple[Layer, ...]
    activation: str
    path: LayerMoments | None
    widths: tuple[int, ...]
    live: Sequence[Units] | None = None
    reads: Tensor | slice | None = None
    members: int = 1

    @property
    def max_width(self) -> int:
        return max(layer.width for layer in self.layers)

    @cached_property
    def operations(self) -> int:
        """Operations per sample and row, without the first layer's, which all samples share."""
        widths = [layer.width for layer in self.layers]
        return sum(4 * inputs * outputs for inputs, outputs in pairwise(widths))

    @cached_property
    def each(self) -> "tuple[Networks, ...]":
        """One network at a time, on the same memory."""
        if self.members == 1:
            return (self,)
        stacked = [layer for layer in self.layers if isinstance(layer, LayerMoments)]
        return tuple(
            Networks(
                tuple(layer.member(m) for layer in stacked),
                self.activation,
                None if self.path is None else self.path.member(m),
                self.widths,
                reads=self.reads,
            )
            for m in range(self.members)
        )

    def inputs(self, x: Float[Tensor, "rows all"]) -> Float[Tensor, "rows inputs"]:
        """The columns that the networks read."""
        return x if self.reads is None else x[:, self.reads]

    def noise(self, noise: Noise) -> Noise:
        """The noise of the units that remain."""
        if self.live is None:
            return noise
        pairs = zip(noise, self.live, strict=True)
        return tuple(block if units is None else block[..., units] for block, units in pairs)

    def first(self, x: Float[Tensor, "rows inputs"]) -> First:
        """What is the same for all samples, computed once."""
        path = None if self.path is None else self._of_rows(self.path, x)
        return First(self._of_rows(self.layers[0], x), path)

    def _of_rows(self, layer: Layer, x: Float[Tensor, "rows inputs"]) -> Gaussian:
        pair = x.new_empty(self.members, 2, *x.shape)
        pair[:, 0] = x
        out = x.new_empty(self.members, 2, len(x), layer.width)
        layer.into(pair, out)
        return out[:, 0], out[:, 1]

    def outputs(self, first: First, noise: Noise, scratch: Scratch) -> Gaussian:
        """Moments of the outputs given draws of the hidden layers, members × samples × rows × _.

        Args:
            noise: standard normals for every layer, members × samples × units.
            scratch: buffers to work in. They also hold the result: the next call overwrites it.
        """
        mean, variance = (part.unsqueeze(1) for part in first.units)
        for layer, block in zip(self.layers[1:], noise, strict=False):
            samples, (rows, units) = block.shape[1], mean.shape[2:]
            x = scratch.inputs(self.members, samples * rows, units)
            hidden = x[:, 0].view(self.members, samples, rows, units)
            scale = variance.sqrt() if variance.shape[1] == 1 else variance.sqrt_()
            torch.addcmul(mean, scale, block.unsqueeze(2), out=hidden)
            IN_PLACE[self.activation](hidden)
            out = scratch.outputs(self.members, samples * rows, layer.width)
            layer.into(x, out)
            mean, variance = (out[:, i].view(self.members, samples, rows, -1) for i in range(2))
        if first.path is not None:
            last = slice(-first.path[0].shape[-1], None)
            mean[..., last] += first.path[0].unsqueeze(1)
            variance[..., last] += first.path[1].unsqueeze(1)
        shape = (-1, noise[-1].shape[1], -1, -1)
        return mean.expand(shape), variance.expand(shape)

    def moments(self, first: First) -> Gaussian:
        """Moments of the outputs without sampling, members × rows × outputs.

        Exact up to the second layer's inputs, and so for at most one hidden layer. Later layers
        approximate: units count as independent, and their pre-activations as Gaussian.
        """
        mean, variance = first.units
        for layer in self.layers[1:]:
            units = activation_moments(self.activation, mean, variance)
            mean, variance = layer.of_gaussian(*units)
        if first.path is None:
            return mean, variance
        return add_to_last(mean, first.path[0]), add_to_last(variance, first.path[1])


# Moments of an activation

_TINY = 1e-20  # below the variance of any float32 product; avoids 0/0 for a unit without variance
_NODES = 32  # of the quadrature, which is exact for polynomials up to degree 63


def activation_moments(activation: str, mean: Tensor, variance: Tensor) -> Gaussian:
    """Mean and variance of f(a), a ~ N(mean, variance), of each unit.

    By Gauss–Hermite quadrature: E f(a) = Σ w_k f(μ + σ x_k), two passes for the variance.
    """
    if activation == "relu":
        return _relu_moments(mean, variance)
    x, w = (part.view(-1, *[1] * mean.ndim) for part in _quadrature_on(mean.device, mean.dtype))
    values = ACTIVATIONS[activation](mean + variance.sqrt() * x)
    centre = (w * values).sum(0)
    return centre, (w * (values - centre).square()).sum(0)


def _relu_moments(mean: Tensor, variance: Tensor) -> Gaussian:
    """Mean and variance of max(a, 0), a ~ N(mean, variance).

    With t = μ/σ and r = σφ(t) − |μ|Φ(−|t|), the mean is max(μ, 0) + r. The mean of max(−a, 0) is
    max(−μ, 0) + r, and the variance is σ²Φ(t) minus the product of both means. This avoids
    differences of large numbers.
    """
    scale = variance.clamp_min(_TINY).sqrt_()
    t = mean / scale
    tail = torch.exp(-0.5 * t.square()).mul_(scale / math.sqrt(2 * math.pi))
    tail.addcmul_(mean.abs(), ndtr(-t.abs()), value=-1).clamp_min_(0)
    positive, negative = mean.clamp_min(0) + tail, (-mean).clamp_min(0) + tail
    spread = variance * ndtr(t) - positive * negative
    return positive, spread.clamp_min_(0)


@cache
def quadrature() -> Float[np.ndarray, "2 nodes"]:
    """Nodes x_k and weights w_k of E f(z) = Σ w_k f(x_k), z ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return np.stack([nodes, weights / weights.sum()])


@cache
def _quadrature_on(device: torch.device, dtype: torch.dtype) -> Float[Tensor, "2 nodes"]:
    """The same on a device, copied there once."""
    with torch.inference_mode(mode=False):
        return torch.tensor(quadrature(), dtype=dtype, device=device)
