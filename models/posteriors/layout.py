"""Named tensors as slices of one weight vector.

Methods of inference work on the vector w (one product, one reduction, one fused optimiser step);
networks read the named tensors. Splitting the vector is free in the forward pass and costs one
concatenation in the backward pass. Sizes are computed once: each step of a training asks for them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

Weights = Mapping[str, Float[Tensor, "..."]]
"""Named weights. If there is a sample axis, it is the first axis of every tensor."""


@dataclass(frozen=True)
class Layout:
    """Order, names and shapes of the tensors in a weight vector."""

    shapes: Mapping[str, tuple[int, ...]]

    @cached_property
    def sizes(self) -> list[int]:
        return [math.prod(shape) for shape in self.shapes.values()]

    @cached_property
    def num_weights(self) -> int:
        return sum(self.sizes)

    @property
    def members(self) -> int:
        """Number of networks whose weights the vector holds."""
        return 1

    @cached_property
    def part_sizes(self) -> list[int]:
        """Lengths of the parts of the vector, one for each set of members of equal shape."""
        return [self.num_weights]

    def split(self, vector: Shaped[Tensor, "*samples weights"]) -> tuple[Tensor, ...]:
        """Return the vector's slices, one flat slice per tensor."""
        return torch.split_with_sizes(vector, self.sizes, dim=-1)

    def blocks(self, vector: Shaped[Tensor, "*samples weights"]) -> tuple[Tensor, ...]:
        """Return views [*samples, members, weights of a member], one per part."""
        return (vector.unsqueeze(-2),)

    def unflatten(self, vector: Shaped[Tensor, "*samples weights"]) -> dict[str, Tensor]:
        """Return views of the vector by tensor name, in the tensors' shapes."""
        pairs = zip(self.shapes.items(), self.split(vector), strict=True)
        return {name: part.unflatten(-1, shape) for (name, shape), part in pairs}

    def flatten(self, weights: Weights) -> Shaped[Tensor, "*samples weights"]:
        """Concatenate named tensors to a vector: the inverse of `unflatten`."""
        parts = [weights[name].flatten(-len(shape)) for name, shape in self.shapes.items()]
        return torch.cat(parts, dim=-1)


@dataclass(frozen=True)
class StackedLayout(Layout):
    """Networks one after the other in one vector: parts of several members of equal shape.

    A member's weights are consecutive, in the order of its own layout. So a member is a slice, and
    vectors of separately trained parts are joined by concatenation. The tensors of all members of
    a part are one tensor with the member axis first, under the name `part0.NAME`.
    """

    parts: tuple[tuple[int, Layout], ...]  # number of networks, and the layout of one

    @classmethod
    def of(cls, parts: Sequence[tuple[int, Layout]]) -> "StackedLayout":
        shapes = {
            f"{part_name(i)}{name}": (members, *shape)
            for i, (members, layout) in enumerate(parts)
            for name, shape in layout.shapes.items()
        }
        return cls(shapes, tuple(parts))

    @property
    def members(self) -> int:
        return sum(count for count, _ in self.parts)

    @cached_property
    def part_sizes(self) -> list[int]:
        return [members * layout.num_weights for members, layout in self.parts]

    def split(self, vector: Shaped[Tensor, "*samples weights"]) -> tuple[Tensor, ...]:
        """Return slices [*samples, members, size], one per tensor."""
        pairs = zip(self.blocks(vector), self.parts, strict=True)
        return tuple(piece for block, (_, layout) in pairs for piece in layout.split(block))

    def blocks(self, vector: Shaped[Tensor, "*samples weights"]) -> tuple[Tensor, ...]:
        pairs = zip(
            torch.split_with_sizes(vector, self.part_sizes, dim=-1), self.parts, strict=True
        )
        return tuple(slice_.unflatten(-1, (members, -1)) for slice_, (members, _) in pairs)

    def by_member(self, vector: Shaped[Tensor, "*samples weights"]) -> list[Tensor]:
        """Return the slice of each member."""
        return [piece for block in self.blocks(vector) for piece in block.unbind(-2)]

    def pick(
        self, vector: Shaped[Tensor, "*samples weights"], members: Sequence[int]
    ) -> Shaped[Tensor, "*samples picked"]:
        """Return the weights of some members, one after the other."""
        pieces = self.by_member(vector)
        return torch.cat([pieces[member] for member in members], dim=-1)

    def unflatten(self, vector: Shaped[Tensor, "*samples weights"]) -> dict[str, Tensor]:
        pairs = zip(self.shapes.items(), self.split(vector), strict=True)
        return {name: part.unflatten(-1, shape[1:]) for (name, shape), part in pairs}

    def flatten(self, weights: Weights) -> Shaped[Tensor, "*samples weights"]:
        parts = []
        for i, (_, layout) in enumerate(self.parts):
            named = {name: weights[f"{part_name(i)}{name}"] for name in layout.shapes}
            parts.append(layout.flatten(named).flatten(-2))
        return torch.cat(parts, dim=-1)


def part_name(part: int) -> str:
    """Return the prefix of the names of a part's tensors."""
    return f"part{part}."
