"""Multilayer perceptrons as pure functions of their weights."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Generator, Tensor
from torch.nn import functional

from models.config import MLPConfig
from models.layers.dense import Dense, add_to_last
from models.layers.layer import gaussian_draw
from models.networks.network import Batch, LocallyDrawn, Masks, Noise, Outputs, init_layers
from models.posteriors.layout import Weights

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "gelu": functional.gelu,
}

SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda z: (z > 0).to(z.dtype),
    "tanh": lambda z: 1 - torch.tanh(z).square(),
    "silu": lambda z: torch.sigmoid(z) * (1 + z * torch.sigmoid(-z)),
    "gelu": lambda z: (
        0.5 * torch.erfc(-z * math.sqrt(0.5))
        + z * torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    ),
}
"""The activations' derivatives."""


def gain_of(activation: str) -> float:
    """Return √2 for ReLU and similar units (He et al. 2015), 1 for tanh."""
    return 1.0 if activation == "tanh" else math.sqrt(2.0)


@dataclass(frozen=True)
class MLP(LocallyDrawn):
    """A multilayer perceptron: dense layers with an activation between them.

    `path` is a linear path from the inputs around the hidden layers to the last outputs. Those that
    describe the noise learn by it long before they have units of their own.
    """

    dense: tuple[Dense, ...]
    activation: str = "relu"
    path: Dense | None = None

    @classmethod
    def build(
        cls, config: MLPConfig, in_features: int, out_features: int, path_to: int = 0
    ) -> "MLP":
        """Build the network. Without hidden layers it is linear, and a path would add nothing.

        Args:
            path_to: how many of the outputs, the last ones, a linear path leads to.
        """
        widths = [in_features, *(config.hidden or ()), out_features]
        dense = tuple(Dense(f"dense{i}", *pair) for i, pair in enumerate(pairwise(widths)))
        path = Dense("path", in_features, path_to) if path_to and len(dense) > 1 else None
        return cls(dense, config.activation, path)

    @cached_property
    def layers(self) -> tuple[Dense, ...]:
        """The last dense layer is the last one."""
        return self.dense if self.path is None else (self.path, *self.dense)

    @property
    def num_outputs(self) -> int:
        return self.dense[-1].out_features

    @property
    def widest(self) -> int:
        return max(layer.out_features for layer in self.dense)

    @property
    def operations(self) -> int:
        return 2 * self.layout.num_weights

    @property
    def mask_widths(self) -> tuple[int, ...]:
        return tuple(layer.out_features for layer in self.dense[:-1])

    def noise_widths(self) -> list[int]:
        return [layer.out_features for layer in self.dense]

    def init(self, generator: Generator) -> dict[str, Tensor]:
        """Weights from N(0, gain²/fan-in), with gain² = 2 for ReLU and similar (He et al. 2015).

        A linear path starts at 0.
        """
        weights = init_layers(self.dense, gain_of(self.activation), generator)
        if self.path is None:
            return weights
        return {name: torch.zeros(shape) for name, shape in self.path.shapes().items()} | weights

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> Outputs:
        activation, y = ACTIVATIONS[self.activation], x
        for i, layer in enumerate(self.dense[:-1]):
            y = activation(layer(weights, y))
            y = y if masks is None else y * masks[i]
        y = self.dense[-1](weights, y)
        return y if self.path is None else add_to_last(y, self.path(weights, x))

    def local(self, loc: Weights, variance: Weights, x: Batch, noise: Noise) -> Outputs:
        activation, y = ACTIVATIONS[self.activation], x
        for layer, block in zip(self.dense[:-1], noise[:-1], strict=True):
            y = activation(layer.local(loc, variance, y, block))
        if self.path is None:
            return self.dense[-1].local(loc, variance, y, noise[-1])
        mean, spread = self.dense[-1].moments(loc, variance, y)
        of_path, spread_of_path = self.path.moments(loc, variance, x)
        mean, spread = add_to_last(mean, of_path), add_to_last(spread, spread_of_path)
        return gaussian_draw(mean, spread, noise[-1])
