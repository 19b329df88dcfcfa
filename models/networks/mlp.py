"""Multilayer perceptrons as pure functions of their weights."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from models.config import MLPConfig
from models.layers.dense import Dense
from models.networks.network import init_layers, layout_of
from models.posteriors.layout import Layout, Weights

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "gelu": functional.gelu,
}


def gain_of(activation: str) -> float:
    """Return √2 for ReLU and similar units (He et al. 2015), 1 for tanh."""
    return 1.0 if activation == "tanh" else math.sqrt(2.0)


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron: dense layers with an activation between them."""

    layers: tuple[Dense, ...]
    activation: str = "relu"

    @classmethod
    def build(cls, config: MLPConfig, in_features: int, out_features: int) -> "MLP":
        widths = [in_features, *(config.hidden or ()), out_features]
        pairs = enumerate(pairwise(widths))
        return cls(tuple(Dense(f"dense{i}", *pair) for i, pair in pairs), config.activation)

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor."""
        return layout_of(self.layers)

    @property
    def num_outputs(self) -> int:
        return self.layers[-1].out_features

    @property
    def widest(self) -> int:
        """Numbers per row in the largest output of a layer."""
        return max(layer.out_features for layer in self.layers)

    @property
    def operations(self) -> int:
        """Multiplications and additions for one row."""
        return 2 * self.layout.num_weights

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Units that dropout may drop: those of each hidden layer."""
        return tuple(layer.out_features for layer in self.layers[:-1])

    def noise_widths(self) -> list[int]:
        """Number of standard normals needed per layer and sample."""
        return [layer.out_features for layer in self.layers]

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights from N(0, gain²/fan-in), with gain² = 2 for ReLU and similar (He et al. 2015)."""
        return init_layers(self.layers, gain_of(self.activation), generator)

    def __call__(
        self,
        weights: Weights,
        x: Float[Tensor, "*samples batch inputs"],
        masks: Sequence[Tensor] | None = None,
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Compute outputs; weights [S, …] give outputs [S, batch, outputs] in one pass.

        Args:
            masks: factors on the units of each hidden layer: [batch, units], or [S, 1, units] if
                all rows share S masks.
        """
        activation = ACTIVATIONS[self.activation]
        for i, layer in enumerate(self.layers[:-1]):
            x = activation(layer(weights, x))
            x = x if masks is None else x * masks[i]
        return self.layers[-1](weights, x)

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Float[Tensor, "*samples batch inputs"],
        noise: Sequence[Tensor],
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Compute outputs by local reparameterisation with one block of noise per layer.

        Noise [batch, width] gives one independent draw per row, for training. Noise [S, 1, width]
        gives S draws that all rows share, for prediction; the products of the first layer are then
        computed once.
        """
        activation = ACTIVATIONS[self.activation]
        for layer, block in zip(self.layers[:-1], noise[:-1], strict=True):
            x = activation(layer.local(loc, variance, x, block))
        return self.layers[-1].local(loc, variance, x, noise[-1])
