"""Networks as pure functions of their weights; the sample axis, where there is one, comes first."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from models.config import NetworkConfig
from models.layers.dense import Dense
from models.layout import Layout, Weights

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "gelu": functional.gelu,
}


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron: dense layers with an activation between them."""

    layers: tuple[Dense, ...]
    activation: str = "relu"

    @classmethod
    def build(cls, config: NetworkConfig, in_features: int, out_features: int) -> "MLP":
        widths = [in_features, *(config.hidden or ()), out_features]
        pairs = enumerate(zip(widths, widths[1:], strict=False))
        return cls(
            tuple(Dense(f"dense{i}", *pair) for i, pair in pairs), config.activation
        )

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor."""
        return Layout(
            {k: shape for layer in self.layers for k, shape in layer.shapes().items()}
        )

    def fan_in(self, name: str) -> int:
        """Number of inputs of the layer that the named tensor belongs to."""
        return next(
            layer.in_features for layer in self.layers if name in layer.shapes()
        )

    def noise_widths(self) -> list[int]:
        """Standard normals that the local estimator needs per layer and sample."""
        return [layer.out_features for layer in self.layers]

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights from N(0, gain²/fan-in), gain² = 2 for ReLU-like units (He et al. 2015)."""
        gain = 1.0 if self.activation == "tanh" else math.sqrt(2.0)
        weights = {}
        for name, shape in self.layout.shapes.items():
            draw = torch.randn(shape, generator=generator)
            scale = gain / math.sqrt(self.fan_in(name)) if len(shape) > 1 else 0.0
            weights[name] = draw * scale
        return weights

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*samples batch inputs"]
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Outputs for given weights; [S, …] weights give [S, batch, outputs] in one pass."""
        return self._forward(
            x, [lambda h, layer=layer: layer(weights, h) for layer in self.layers]
        )

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Float[Tensor, "*samples batch inputs"],
        noise: Sequence[Tensor],
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Outputs by local reparameterisation, one noise block per layer.

        Noise [batch, width] gives one independent draw per row (training); [S, 1, width] gives S
        draws per row that all rows share (prediction), the first layer's products made once.
        """
        pairs = zip(self.layers, noise, strict=True)
        return self._forward(
            x,
            [
                lambda h, la=layer, e=eps: la.local(loc, variance, h, e)
                for layer, eps in pairs
            ],
        )

    def _forward(
        self, x: Tensor, steps: Sequence[Callable[[Tensor], Tensor]]
    ) -> Tensor:
        activation = ACTIVATIONS[self.activation]
        for step in steps[:-1]:
            x = activation(step(x))
        return steps[-1](x)
