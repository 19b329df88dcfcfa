"""What all networks have in common, and how their inputs are laid out.

A network is a pure function of its weights; the sample axis, where there is one, comes first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.posteriors.layout import Layout, Weights

Masks = Sequence[Float[Tensor, "... _"]]
"""Per masked layer [batch, units], or [S, 1, units] for S samples whose masks all rows share."""


@runtime_checkable
class Layer(Protocol):
    """A description with named tensors and the number of inputs that one of its units adds up."""

    def shapes(self) -> dict[str, tuple[int, ...]]: ...

    @property
    def fan_in(self) -> int: ...


@runtime_checkable
class Network(Protocol):
    """A description of layers; it holds no weights."""

    @property
    def layers(self) -> Sequence[Layer]:
        """All that have weights, from the input to the output."""
        ...

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor."""
        ...

    @property
    def num_outputs(self) -> int: ...

    @property
    def widest(self) -> int:
        """Numbers per row in the largest of the layers' outputs."""
        ...

    @property
    def operations(self) -> int:
        """Multiplications and additions for one row."""
        ...

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Units, per layer, that dropout may leave out."""
        ...

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Random initial weights."""
        ...

    def __call__(self, weights: Weights, x: Tensor, masks: Masks | None = None) -> Tensor:
        """Outputs for given weights; [S, …] weights give [S, batch, …] in one pass."""
        ...


@runtime_checkable
class LocallyDrawn(Network, Protocol):
    """A network whose units' pre-activations can be drawn instead of its weights."""

    def noise_widths(self) -> list[int]:
        """Standard normals that are needed per layer and sample."""
        ...

    def local(self, loc: Weights, variance: Weights, x: Tensor, noise: Sequence[Tensor]) -> Tensor:
        """Outputs by local reparameterisation, one noise block per layer."""
        ...


@dataclass(frozen=True)
class TensorSlot:
    """Where in a row of inputs a tensor stands, flattened, and its shape."""

    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        return self.start + math.prod(self.shape)


@dataclass(frozen=True)
class Inputs:
    """A row of network inputs: all encoded columns, of which one may be a tensor."""

    width: int
    tensor: TensorSlot | None = None

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> "Inputs":
        """A tensor of this shape and nothing else."""
        return cls(math.prod(shape), TensorSlot(0, shape))


def beside(
    x: Float[Tensor, "*samples batch inputs"],
    slot: TensorSlot,
    read: Float[Tensor, "*samples2 batch units"],
) -> Float[Tensor, "*samples3 batch units_and_rest"]:
    """What was made of the tensor, with the other inputs behind it."""
    if slot.stop - slot.start == x.shape[-1]:
        return read
    rest = torch.cat([x[..., : slot.start], x[..., slot.stop :]], dim=-1)
    lead = torch.broadcast_shapes(read.shape[:-1], rest.shape[:-1])
    return torch.cat([part.expand(*lead, -1) for part in (read, rest)], dim=-1)


def layout_of(layers: Sequence[Layer]) -> Layout:
    """Each layer's own tensors, in order; one that two layers read belongs to one of them."""
    return Layout({name: shape for layer in layers for name, shape in layer.shapes().items()})


def fan_in(layers: Sequence[Layer], name: str) -> int:
    """Number of inputs of a unit of the layer that the named tensor belongs to."""
    return next(layer.fan_in for layer in layers if name in layer.shapes())


def init_layers(
    layers: Sequence[Layer], gain: float, generator: torch.Generator
) -> dict[str, Tensor]:
    """Weights from N(0, gain²/fan-in), biases 0."""
    weights = {}
    for layer in layers:
        for name, shape in layer.shapes().items():
            scale = gain / math.sqrt(layer.fan_in) if len(shape) > 1 else 0.0
            weights[name] = torch.randn(shape, generator=generator) * scale
    return weights


def prior_layout(layers: Sequence[Layer], *, separate_outputs: bool) -> Layout:
    """The slices of the weight vector that share a prior scale: tensors, or single outputs.

    Outputs of different meaning (a mean and a log-variance) must not share one. Each then has its
    own row of the last layer's weight matrix and its own element of the bias.
    """
    shapes = layout_of(layers).shapes
    if not separate_outputs:
        return Layout(shapes)
    slices: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        if name in layers[-1].shapes():
            slices |= {f"{name}.{i}": shape[1:] for i in range(shape[0])}
        else:
            slices[name] = shape
    return Layout(slices)
