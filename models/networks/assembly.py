"""What networks of several kinds of layers have in common: their tensors and initial weights."""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from models.posteriors.layout import Layout


@runtime_checkable
class Layer(Protocol):
    """A description with named tensors and the number of inputs that one of its units adds up."""

    def shapes(self) -> dict[str, tuple[int, ...]]: ...

    @property
    def fan_in(self) -> int: ...


def layout_of(layers: Sequence[Layer]) -> Layout:
    """Each layer's own tensors, in order; one that two layers read belongs to one of them."""
    return Layout({name: shape for layer in layers for name, shape in layer.shapes().items()})


def fan_in_of(layers: Sequence[Layer], name: str) -> int:
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
