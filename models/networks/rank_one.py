"""Networks that share their hidden weights up to factors of rank one: BatchEnsemble.

Member m has the weights W ∘ (s_m r_mᵀ) in a hidden layer, and its own biases and output layer:

    y_m = s_m ∘ (W (r_m ∘ x_m)) + b_m

Source: Wen et al. 2020 (arXiv 2002.06715), eq. 5; own heads, and random signs at the inputs alone,
are those of TabM (Gorishniy et al. 2024, arXiv 2410.24210).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from models.networks.mlp import ACTIVATIONS, gain_of
from models.networks.network import layout_of
from models.posteriors.layout import Layout, Weights


@dataclass(frozen=True)
class SharedDense:
    """A hidden layer with shared weights, and factors and biases of each member."""

    name: str
    in_features: int
    out_features: int
    members: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def fan_in(self) -> int:
        """Number of inputs of one output."""
        return self.in_features

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor of one network."""
        return {
            self.weight: (self.out_features, self.in_features),
            f"{self.name}.input": (self.members, self.in_features),
            f"{self.name}.output": (self.members, self.out_features),
            f"{self.name}.bias": (self.members, self.out_features),
        }

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*lead rows inputs"]
    ) -> Float[Tensor, "networks members rows outputs"]:
        """Compute the outputs of each member; x may be the same for all members."""
        weight, factors = weights[self.weight], weights[f"{self.name}.input"].unsqueeze(2)
        scaled = x * factors
        product = torch.bmm(scaled.flatten(1, 2), weight.mT).unflatten(1, scaled.shape[1:3])
        output, bias = (weights[f"{self.name}.{part}"].unsqueeze(2) for part in ("output", "bias"))
        return product * output + bias


@dataclass(frozen=True)
class Heads:
    """An output layer for each member."""

    name: str
    in_features: int
    out_features: int
    members: int

    @property
    def fan_in(self) -> int:
        """Number of inputs of one output."""
        return self.in_features

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor of one network."""
        return {
            f"{self.name}.weight": (self.members, self.out_features, self.in_features),
            f"{self.name}.bias": (self.members, self.out_features),
        }

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*lead rows inputs"]
    ) -> Float[Tensor, "networks members rows outputs"]:
        """Compute the outputs of each member; x may be the same for all members."""
        return x @ weights[f"{self.name}.weight"].mT + weights[f"{self.name}.bias"].unsqueeze(2)


@dataclass(frozen=True)
class RankOneMLP:
    """Members with shared hidden weights. Weights have a network axis first."""

    hidden: tuple[SharedDense, ...]
    heads: Heads
    activation: str = "relu"

    @classmethod
    def build(cls, widths: Sequence[int], members: int, activation: str = "relu") -> "RankOneMLP":
        """Build the network of these widths, from the inputs to the outputs."""
        *pairs, last = pairwise(widths)
        hidden = tuple(SharedDense(f"dense{i}", *pair, members) for i, pair in enumerate(pairs))
        return cls(hidden, Heads(f"dense{len(pairs)}", *last, members), activation)

    @property
    def members(self) -> int:
        return self.heads.members

    @property
    def layers(self) -> tuple[SharedDense | Heads, ...]:
        """All layers with weights, from the input to the output."""
        return *self.hidden, self.heads

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor."""
        return layout_of(self.layers)

    @property
    def num_outputs(self) -> int:
        """Outputs of one member."""
        return self.heads.out_features

    @property
    def widest(self) -> int:
        """Numbers per row in the largest output of a layer, all members together."""
        return self.members * max(layer.out_features for layer in self.layers)

    @property
    def operations(self) -> int:
        """Multiplications and additions for one row, all members together."""
        return 2 * self.members * sum(one.in_features * one.out_features for one in self.layers)

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Units that dropout may drop: those of each hidden layer, all members together."""
        return tuple(self.members * layer.out_features for layer in self.hidden)

    def noise_widths(self) -> list[int]:
        """Members share weights, so that their units cannot be drawn apart.

        Raises:
            TypeError: always.
        """
        raise TypeError("units of members with shared weights cannot be drawn: draw weights")

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights from N(0, gain²/fan-in); random signs at the inputs make members differ."""
        gain, weights = gain_of(self.activation), {}
        for layer in self.layers:
            for name, shape in layer.shapes().items():
                if name.endswith(".weight"):
                    scale = gain / math.sqrt(layer.fan_in)
                    weights[name] = torch.randn(shape, generator=generator) * scale
                else:
                    weights[name] = torch.full(shape, 0.0 if name.endswith(".bias") else 1.0)
        if self.hidden:
            signs = weights[f"{self.hidden[0].name}.input"]
            signs -= 2.0 * (torch.rand(signs.shape, generator=generator) < 0.5)
        return weights

    def __call__(
        self,
        weights: Weights,
        x: Float[Tensor, "*networks rows inputs"],
        masks: Sequence[Float[Tensor, "networks rows _"]] | None = None,
    ) -> Float[Tensor, "networks members rows outputs"]:
        """Compute outputs of weights [networks, …]; x may have the network axis, too."""
        y = x.unsqueeze(-3) if x.ndim == 3 else x.view(1, 1, *x.shape)
        for i, layer in enumerate(self.hidden):
            y = ACTIVATIONS[self.activation](layer(weights, y))
            if masks is not None:
                y = y * masks[i].unflatten(-1, (self.members, -1)).movedim(-2, -3)
        return self.heads(weights, y)
