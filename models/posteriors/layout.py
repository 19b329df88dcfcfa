"""Named tensors as slices of one weight vector.

Methods work on the vector w (one product, one reduction, one fused optimiser step); networks read
the named tensors. Splitting a vector costs nothing forward and one concatenation backward.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

Weights = Mapping[str, Float[Tensor, "..."]]
"""Named weights; where there is a sample axis, every tensor carries it in front."""


@dataclass(frozen=True)
class Layout:
    """Order, names and shapes of the tensors in a weight vector."""

    shapes: Mapping[str, tuple[int, ...]]

    @property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes.values()]

    @property
    def num_weights(self) -> int:
        return sum(self.sizes)

    def split(self, vector: Shaped[Tensor, "*samples weights"]) -> tuple[Tensor, ...]:
        """The vector's slices, one per tensor, not yet in shape."""
        return torch.split(vector, self.sizes, dim=-1)

    def unflatten(self, vector: Shaped[Tensor, "*samples weights"]) -> dict[str, Tensor]:
        """Views of the vector under the tensors' names and in their shapes."""
        pairs = zip(self.shapes.items(), self.split(vector), strict=True)
        return {name: part.unflatten(-1, shape) for (name, shape), part in pairs}

    def flatten(self, weights: Weights) -> Shaped[Tensor, "*samples weights"]:
        """The inverse of `unflatten`."""
        parts = [weights[name].flatten(-len(shape)) for name, shape in self.shapes.items()]
        return torch.cat(parts, dim=-1)
