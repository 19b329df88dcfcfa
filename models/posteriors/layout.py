"""Named tensors as slices of one weight vector.

Methods of inference work on the vector w (one product, one reduction, one fused optimiser step);
networks read the named tensors. Splitting the vector is free in the forward pass and costs one
concatenation in the backward pass.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

Weights = Mapping[str, Float[Tensor, "..."]]
"""Named weights. If there is a sample axis, it is the first axis of every tensor."""


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
        """Return the vector's slices, one flat slice per tensor."""
        return torch.split(vector, self.sizes, dim=-1)

    def unflatten(self, vector: Shaped[Tensor, "*samples weights"]) -> dict[str, Tensor]:
        """Return views of the vector by tensor name, in the tensors' shapes."""
        pairs = zip(self.shapes.items(), self.split(vector), strict=True)
        return {name: part.unflatten(-1, shape) for (name, shape), part in pairs}

    def flatten(self, weights: Weights) -> Shaped[Tensor, "*samples weights"]:
        """Concatenate named tensors to a vector: the inverse of `unflatten`."""
        parts = [weights[name].flatten(-len(shape)) for name, shape in self.shapes.items()]
        return torch.cat(parts, dim=-1)
