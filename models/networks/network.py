"""What all networks are, and the layout of a network's inputs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from models.layers.layer import Layer
from models.posteriors.layout import Layout, Weights

Batch = Float[Tensor, "*samples batch inputs"]
Outputs = Float[Tensor, "*samples2 batch outputs"]
Masks = Sequence[Float[Tensor, "... _"]]
"""One mask per masked layer: [batch, units], or [S, 1, units] if all rows share S masks."""

Noise = Sequence[Float[Tensor, "... _"]]
"""A block of standard normals per layer."""


class Network(ABC):
    """A pure function of named weights: a frozen dataclass of layers, which holds no weights."""

    @property
    @abstractmethod
    def layers(self) -> Sequence[Layer]:
        """All layers with weights, from the input to the output."""

    @cached_property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor. One that two layers read occurs once."""
        return layout_of(self.layers)

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """Outputs of a row; of a stack, those of one member."""

    @property
    @abstractmethod
    def widest(self) -> int:
        """Numbers per row in the largest output of a layer."""

    @property
    @abstractmethod
    def operations(self) -> int:
        """Multiplications and additions for one row."""

    @property
    @abstractmethod
    def mask_widths(self) -> tuple[int, ...]:
        """Units per layer that dropout may drop."""

    def init(self, generator: Generator) -> dict[str, Tensor]:
        """Random weights from N(0, 1/fan-in); biases are 0."""
        return init_layers(self.layers, 1.0, generator)

    @abstractmethod
    def __call__(self, weights: Weights, x: Tensor, masks: Masks | None = None) -> Tensor:
        """Compute outputs; weights [S, …] give outputs [S, batch, …] in one pass."""


class LocallyDrawn(Network):
    """A network whose pre-activations can be drawn instead of its weights."""

    @abstractmethod
    def noise_widths(self) -> list[int]:
        """Number of standard normals needed per layer and sample."""

    @abstractmethod
    def local(self, loc: Weights, variance: Weights, x: Batch, noise: Noise) -> Outputs:
        """Compute outputs by local reparameterisation with one block of noise per layer.

        Noise [batch, width] gives one independent draw per row, for training. Noise [S, 1, width]
        gives S draws that all rows share, for prediction; the products of the first layer are then
        computed once. With weights of several members [M, …] noise is [M, batch, width].
        """


@dataclass(frozen=True)
class TensorSlot:
    """The position of a flattened tensor in a row of inputs, and its shape."""

    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        return self.start + math.prod(self.shape)


@dataclass(frozen=True)
class Inputs:
    """The width of a row of network inputs, and the slot of its tensor if it has one.

    `plain` are the columns that are no pieces of a piecewise encoding; None means all. `boosted`
    are those of trees, which are not among them.
    """

    width: int
    tensor: TensorSlot | None = None
    plain: tuple[int, ...] | None = None
    boosted: tuple[int, ...] = ()

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> "Inputs":
        """Inputs that consist of one tensor of this shape."""
        return cls(math.prod(shape), TensorSlot(0, shape))


def beside(
    x: Batch, slot: TensorSlot, read: Float[Tensor, "*samples2 batch units"]
) -> Float[Tensor, "*samples3 batch units_and_rest"]:
    """Concatenate units computed from the tensor with the other inputs."""
    if slot.stop - slot.start == x.shape[-1]:
        return read
    rest = torch.cat([x[..., : slot.start], x[..., slot.stop :]], dim=-1)
    lead = torch.broadcast_shapes(read.shape[:-1], rest.shape[:-1])
    return torch.cat([part.expand(*lead, -1) for part in (read, rest)], dim=-1)


def layout_of(layers: Sequence[Layer]) -> Layout:
    """The tensors of all layers in order."""
    return Layout({name: shape for layer in layers for name, shape in layer.shapes().items()})


def fan_in(layers: Sequence[Layer], name: str) -> int:
    """Return the number of inputs of one unit in the layer that the named tensor belongs to."""
    return next(layer.fan_in for layer in layers if name in layer.shapes())


def init_layers(layers: Sequence[Layer], gain: float, generator: Generator) -> dict[str, Tensor]:
    """Draw weights from N(0, gain²/fan-in); biases are 0."""
    weights = {}
    for layer in layers:
        for name, shape in layer.shapes().items():
            scale = gain / math.sqrt(layer.fan_in) if len(shape) > 1 else 0.0
            weights[name] = torch.randn(shape, generator=generator) * scale
    return weights
