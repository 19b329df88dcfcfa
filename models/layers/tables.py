"""Layers whose matrix has a row for each token or key, and a decoder that shares such a matrix."""

from dataclasses import dataclass

from jaxtyping import Float, Int, Shaped
from torch import Tensor

from models.layers.dense import affine
from models.layers.layer import Layer
from models.posteriors.layout import Weights

_KEY_FAN_IN = 100  # initial rows have a deviation of 0.1: at first every series is an average one


@dataclass(frozen=True)
class Embedding(Layer):
    """The embedding of a token is a row of the weight matrix."""

    num_tokens: int
    width: int

    @property
    def fan_in(self) -> int:
        """The tied decoder's number of inputs, so that its initial logits are of order 1."""
        return self.width

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {self.weight: (self.num_tokens, self.width)}

    def __call__(
        self, weights: Weights, tokens: Int[Tensor, "batch steps"]
    ) -> Float[Tensor, "*samples batch steps width"]:
        """Return the tokens' rows of every sample's matrix."""
        rows = weights[self.weight].index_select(-2, tokens.flatten())
        return rows.unflatten(-2, tokens.shape)


@dataclass(frozen=True)
class TiedDecoder(Layer):
    """logits = x Eᵀ + b with the embedding's matrix E.

    The decoder owns only the bias, so that E occurs once in a layout and in the KL.
    Source: Press and Wolf 2017 (arXiv 1608.05859).
    """

    embedding: Embedding

    @property
    def fan_in(self) -> int:
        return self.embedding.width

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {self.bias: (self.embedding.num_tokens,)}

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*samples batch steps width"]
    ) -> Float[Tensor, "*samples2 batch steps tokens"]:
        """Compute the logits of all samples, rows and steps in one product."""
        rows = affine(x.flatten(-3, -2), weights[self.embedding.weight], weights[self.bias])
        return rows.unflatten(-2, x.shape[-3:-1])


@dataclass(frozen=True)
class KeyTable(Layer):
    """A row of `width` numbers for each key, and a last one for keys that training did not have.

    All rows share one prior. Its learned scale shrinks them to what all series have in common, as
    far as the data do not tell the series apart.
    """

    num_keys: int
    width: int

    @property
    def fan_in(self) -> int:
        return _KEY_FAN_IN

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {self.weight: (self.num_keys + 1, self.width)}

    def __call__(
        self, weights: Weights, numbers: Shaped[Tensor, "*samples batch"]
    ) -> Float[Tensor, "*samples2 batch width"]:
        """The rows of these numbers; a sample's numbers are looked up in that sample's table."""
        table, index = weights[self.weight], numbers.long()
        if index.ndim == 1:
            return table.index_select(-2, index)
        table = table.expand(*index.shape[:-1], -1, -1)
        return table.gather(-2, index.unsqueeze(-1).expand(*index.shape, self.width))
