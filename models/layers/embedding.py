"""Token embeddings, and the decoder that reads the same tensor, with a sample axis."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from models.layers.dense import affine
from models.posteriors.layout import Weights


@dataclass(frozen=True)
class Embedding:
    """A row of the weight matrix per token."""

    name: str
    num_tokens: int
    width: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def fan_in(self) -> int:
        """As the tied decoder's, whose logits then begin at order 1 for hidden units of order 1."""
        return self.width

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""
        return {self.weight: (self.num_tokens, self.width)}

    def __call__(
        self, weights: Weights, tokens: Int[Tensor, "batch steps"]
    ) -> Float[Tensor, "*samples batch steps width"]:
        """The tokens' rows, gathered from every sample's matrix at once."""
        rows = weights[self.weight].index_select(-2, tokens.flatten())
        return rows.unflatten(-2, tokens.shape)


@dataclass(frozen=True)
class TiedDecoder:
    """logits = x Eᵀ + b with the embedding's matrix E, which stays the embedding's tensor.

    Only the bias is its own, so that E stands in a layout, and in the KL, once.
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
        """One product for all samples, rows and steps."""
        rows = affine(x.flatten(-3, -2), weights[self.embedding.weight], weights[self.bias])
        return rows.unflatten(-2, x.shape[-3:-1])
