"""Recurrent networks as pure functions of their weights: one draw for all time steps.

There is no `local` form: drawing the pre-activations of each step would give each step different
weights, which is another model (Fortunato et al. 2017, arXiv 1704.02798, §3).
"""

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float, Int
from torch import Tensor

from models.config import MLPConfig, RecurrentConfig
from models.exceptions import InvalidData
from models.layers.layer import Layer
from models.layers.recurrent import CELLS, Recurrent, Sequences, State
from models.layers.tables import Embedding, TiedDecoder
from models.networks.mlp import MLP
from models.networks.network import (
    Batch,
    Inputs,
    Masks,
    Network,
    Outputs,
    TensorSlot,
    beside,
    layout_of,
)
from models.posteriors.layout import Weights

States = tuple[State, ...]
"""One state per layer. For truncated backpropagation the caller detaches them."""

Tokens = Int[Tensor, "batch steps"]
Logits = Float[Tensor, "*samples batch steps tokens"]
Hidden = Float[Tensor, "*samples batch steps hidden"]


def recurrent_layers(config: RecurrentConfig, in_features: int) -> tuple[Recurrent, ...]:
    """Build the configured layers."""
    pairs = enumerate(pairwise((in_features, *config.hidden)))
    return tuple(Recurrent(f"{config.kind}{i}", config.kind, *pair) for i, pair in pairs)


def run(
    layers: tuple[Recurrent, ...],
    weights: Weights,
    x: Sequences,
    states: States | None,
    masks: Masks | None = None,
) -> tuple[Sequences, States]:
    """Return the top layer's hidden state after every step, and every layer's last state.

    A mask multiplies its layer's outputs, the same at every step (Gal and Ghahramani 2016, arXiv
    1512.05287), but not the layer's own state.
    """
    last = []
    for i, (layer, first) in enumerate(zip(layers, states or (None,) * len(layers), strict=True)):
        x, state = layer(weights, x, first)
        x = x if masks is None else x * masks[i].unsqueeze(-2)
        last.append(state)
    return x, tuple(last)


@dataclass(frozen=True)
class LanguageModel(Network):
    """Embedding → recurrent layers → decoder tied to the embedding: logits of the next token."""

    embedding: Embedding
    recurrent: tuple[Recurrent, ...]
    decoder: TiedDecoder

    @classmethod
    def build(cls, config: RecurrentConfig, num_tokens: int) -> "LanguageModel":
        """Build the model. The embedding is as wide as the last layer: the decoder is tied."""
        embedding = Embedding("embedding", num_tokens, config.hidden[-1])
        layers = recurrent_layers(config, embedding.width)
        return cls(embedding, layers, TiedDecoder("decoder", embedding))

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.embedding, *self.recurrent, self.decoder

    @property
    def num_outputs(self) -> int:
        return self.embedding.num_tokens

    @property
    def widest(self) -> int:
        """Numbers per text and step in the largest output of a layer, usually the logits."""
        gates = (CELLS[layer.kind].gates * layer.hidden for layer in self.recurrent)
        return max(self.num_outputs, *gates)

    @property
    def operations(self) -> int:
        """Multiplications and additions for one step of one text."""
        decoder = self.num_outputs * (self.embedding.width + 1)
        return 2 * (layout_of(self.recurrent).num_weights + decoder)

    @property
    def mask_widths(self) -> tuple[int, ...]:
        return tuple(layer.hidden for layer in self.recurrent)

    def __call__(self, weights: Weights, x: Tokens, masks: Masks | None = None) -> Logits:
        """Return the logits after every step, starting from a state of zeros."""
        return self.advance(weights, x, masks=masks)[0]

    def advance(
        self,
        weights: Weights,
        tokens: Tokens,
        states: States | None = None,
        masks: Masks | None = None,
    ) -> tuple[Logits, States]:
        """Return the logits after every step, and the states after the last one."""
        hidden, states = self.read(weights, tokens, states, masks)
        return self.decoder(weights, hidden), states

    def read(
        self,
        weights: Weights,
        tokens: Tokens,
        states: States | None = None,
        masks: Masks | None = None,
    ) -> tuple[Hidden, States]:
        """Return hidden states instead of logits, which are many times larger, and the states."""
        embedded = self.embedding(weights, tokens)
        return run(self.recurrent, weights, embedded, states, masks)


@dataclass(frozen=True)
class SequenceNetwork(Network):
    """Recurrent layers and a linear layer that reads the hidden state after the last step.

    A row has a sequence [steps, features] or [steps]. The other inputs go to the linear layer
    unchanged.
    """

    slot: TensorSlot
    recurrent: tuple[Recurrent, ...]
    head: MLP

    @classmethod
    def build(cls, config: RecurrentConfig, inputs: Inputs, out_features: int) -> "SequenceNetwork":
        """Build the network.

        Raises:
            InvalidData: if the inputs have no sequence.
        """
        slot = inputs.tensor
        if slot is None or len(slot.shape) > 2:
            given = f"one of shape {list(slot.shape)}" if slot else "none"
            raise InvalidData(
                f"network kind {config.kind!r} reads one tensor per row, [steps] or [steps, "
                f"features]; the features have {given}",
                "/network/kind",
            )
        num_features = slot.shape[1] if len(slot.shape) == 2 else 1
        rest = inputs.width - (slot.stop - slot.start)
        dense = MLPConfig(hidden=(), activation="tanh")  # hidden units are in (−1, 1)
        head = MLP.build(dense, config.hidden[-1] + rest, out_features)
        return cls(slot, recurrent_layers(config, num_features), head)

    @property
    def layers(self) -> tuple[Layer, ...]:
        return *self.recurrent, *self.head.layers

    @property
    def num_outputs(self) -> int:
        return self.head.num_outputs

    @property
    def steps(self) -> int:
        return self.slot.shape[0]

    @property
    def widest(self) -> int:
        """Numbers per row in the largest output of a layer: the gates of all steps."""
        return self.steps * max(CELLS[layer.kind].gates * layer.hidden for layer in self.recurrent)

    @property
    def operations(self) -> int:
        return 2 * self.steps * layout_of(self.recurrent).num_weights + self.head.operations

    @property
    def mask_widths(self) -> tuple[int, ...]:
        return tuple(layer.hidden for layer in self.recurrent)

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> Outputs:
        """Return the outputs after the last step, starting from a state of zeros."""
        flat = x[..., self.slot.start : self.slot.stop]
        sequences = flat.unflatten(-1, (self.steps, -1))
        hidden, _ = run(self.recurrent, weights, sequences, None, masks)
        return self.head(weights, beside(x, self.slot, hidden[..., -1, :]))
