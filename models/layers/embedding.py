"""Token embeddings, and a decoder tied to them, with a sample axis."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from models.layers.dense import affine
from models.posteriors.layout import Weights


@dataclass(frozen=True)
class Embedding:
    """The embedding of a token is a row of the weight matrix."""

    name: str
    num_tokens: int
    width: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def fan_in(self) -> int:
        """The tied decoder's number of inputs, so that its initial logits are of order 1."""
        return self.width

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""
        return {self.weight: (self.num_tokens, self.width)}

    def __call__(
        self, weights: Weights, tokens: Int[Tensor, "batch steps"]
    ) -> Float[Tensor, "*samples batch steps width"]:
        """Return the tokens' rows of every sample's matrix."""
        rows = weights[self.weight].index_select(-2, tokens.flatten())
        return rows.unflatten(-2, tokens.shape)


@dataclass(frozen=True)
class TiedDecoder:
    """logits = x Eᵀ + b with the embedding's matrix E.

    The decoder owns only the bias, so that E occurs once in a layout and in the KL.
    Source: Press and Wolf 2017 (arXiv 1608.05859).
    """

    name: str
    embedding: Embedding

    @property
    def bias(self) -> str:
        return f"{self.name}.bias"

    @property
    def fan_in(self) -> int:
        return self.embedding.width

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of the decoder's own tensor, without sample axis."""
        return {self.bias: (self.embedding.num_tokens,)}

    def __call__(
        self, weights: Weights, x: Float[Tensor, "*samples batch steps width"]
    ) -> Float[Tensor, "*samples2 batch steps tokens"]:
        """Compute the logits of all samples, rows and steps in one product."""
        rows = affine(x.flatten(-3, -2), weights[self.embedding.weight], weights[self.bias])
        return rows.unflatten(-2, x.shape[-3:-1])
