"""Recurrent networks as pure functions of their weights: one draw for all time steps.

There is no `local` form: drawing what a unit adds up at each step would give every step weights
of its own, which is another model (Fortunato et al. 2017, arXiv 1704.02798, §3).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import torch
from annotated_types import Len
from jaxtyping import Float, Int
from torch import Tensor

from models.assembly import Layer, fan_in_of, init_layers, layout_of
from models.config import STRICT, NetworkConfig, Width
from models.layers.embedding import Embedding, TiedDecoder
from models.layers.recurrent import Recurrent, Sequences, State
from models.layout import Layout, Weights
from models.networks import MLP

States = tuple[State, ...]
"""One per layer. Truncated backpropagation carries them on, detached by the caller."""


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Recurrent layers; `hidden` are their widths, from the input to the output."""

    __pydantic_config__ = STRICT
    kind: Literal["rnn", "lstm", "gru"]
    hidden: Annotated[tuple[Width, ...], Len(1, 8)] = (100,)


def recurrent_layers(config: RecurrentConfig, in_features: int) -> tuple[Recurrent, ...]:
    """The layers that a configuration names."""
    pairs = enumerate(pairwise((in_features, *config.hidden)))
    return tuple(Recurrent(f"{config.kind}{i}", config.kind, *pair) for i, pair in pairs)


def run(
    layers: tuple[Recurrent, ...], weights: Weights, x: Sequences, states: States | None
) -> tuple[Sequences, States]:
    """The top layer's hidden state after every step, and every layer's last state."""
    last = []
    for layer, first in zip(layers, states or (None,) * len(layers), strict=True):
        x, state = layer(weights, x, first)
        last.append(state)
    return x, tuple(last)


@dataclass(frozen=True)
class LanguageModel:
    """Embedding → recurrent layers → decoder tied to the embedding: logits of the next token."""

    embedding: Embedding
    recurrent: tuple[Recurrent, ...]
    decoder: TiedDecoder

    @classmethod
    def build(cls, config: RecurrentConfig, num_tokens: int) -> "LanguageModel":
        """The embedding is as wide as the last layer, which decodes with it."""
        embedding = Embedding("embedding", num_tokens, config.hidden[-1])
        layers = recurrent_layers(config, embedding.width)
        return cls(embedding, layers, TiedDecoder("decoder", embedding))

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.embedding, *self.recurrent, self.decoder

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor; the tied one is the embedding's alone."""
        return layout_of(self.layers)

    def prior_layout(self, *, separate_outputs: bool) -> Layout:
        """The tensors: all outputs are logits and mean the same, so that none stands apart."""
        return self.layout

    def fan_in(self, name: str) -> int:
        """Number of inputs of one unit of the layer that the named tensor belongs to."""
        return fan_in_of(self.layers, name)

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights from N(0, 1/fan-in), biases 0."""
        return init_layers(self.layers, 1.0, generator)

    def __call__(
        self, weights: Weights, tokens: Int[Tensor, "batch steps"]
    ) -> Float[Tensor, "*samples batch steps tokens"]:
        """Logits after every step, from a state of zeros."""
        return self.advance(weights, tokens)[0]

    def advance(
        self, weights: Weights, tokens: Int[Tensor, "batch steps"], states: States | None = None
    ) -> tuple[Float[Tensor, "*samples batch steps tokens"], States]:
        """Logits after every step, and the states that the next steps go on from."""
        hidden, states = run(self.recurrent, weights, self.embedding(weights, tokens), states)
        return self.decoder(weights, hidden), states


@dataclass(frozen=True)
class SequenceNetwork:
    """Recurrent layers, and an MLP that reads the last one's last hidden state.

    A row is a sequence [steps, features], flattened as encoders give it; sequences may be of any
    length, those of one call have the same.
    """

    recurrent: tuple[Recurrent, ...]
    head: MLP

    @classmethod
    def build(
        cls, config: RecurrentConfig, num_features: int, out_features: int
    ) -> "SequenceNetwork":
        """For `num_features` numbers in each step; hidden units are in (−1, 1), as after a tanh."""
        dense = NetworkConfig(hidden=(), activation="tanh")
        head = MLP.build(dense, config.hidden[-1], out_features)
        return cls(recurrent_layers(config, num_features), head)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers, from the input to the output."""
        return *self.recurrent, *self.head.layers

    @property
    def layout(self) -> Layout:
        """Name and shape of each weight tensor."""
        return layout_of(self.layers)

    def prior_layout(self, *, separate_outputs: bool) -> Layout:
        """The slices of the weight vector that share a prior scale, as `MLP.prior_layout`."""
        head = self.head.prior_layout(separate_outputs=separate_outputs)
        return Layout({**layout_of(self.recurrent).shapes, **head.shapes})

    def fan_in(self, name: str) -> int:
        """Number of inputs of one unit of the layer that the named tensor belongs to."""
        return fan_in_of(self.layers, name)

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Weights from N(0, 1/fan-in), biases 0."""
        return init_layers(self.layers, 1.0, generator)

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*samples batch inputs"]
    ) -> Float[Tensor, "*samples2 batch outputs"]:
        """Outputs after the last step, from a state of zeros."""
        return self.advance(weights, x)[0]

    def advance(
        self,
        weights: Weights,
        x: Float[Tensor, "*samples batch inputs"],
        states: States | None = None,
    ) -> tuple[Float[Tensor, "*samples2 batch outputs"], States]:
        """Outputs after the last step, and the states that the next steps go on from."""
        sequences = x.unflatten(-1, (-1, self.recurrent[0].in_features))
        hidden, states = run(self.recurrent, weights, sequences, states)
        return self.head(weights, hidden[..., -1, :]), states
