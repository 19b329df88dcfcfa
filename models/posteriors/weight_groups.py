"""Groups of weights that share a learned prior scale, and sums over them.

A tensor's groups are one axis of a view, so that thousands of groups cost one reduction per tensor.
What follows from the shapes alone is computed once: a training step on a small table asks for it
dozens of times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.tensors import Constant

Vector = Float[Tensor, "weights"]
PerGroup = Float[Tensor, "groups"]


@dataclass(frozen=True)
class TensorGroups:
    """The groups of one tensor: its values are viewed as `shape` [outer, size, inner].

    A group has the `size` values with the same outer and inner index.

    Args:
        start: position of the tensor's first value within a member.
    """

    start: int
    shape: tuple[int, int, int]

    @cached_property
    def count(self) -> int:
        return self.shape[0] * self.shape[2]

    @cached_property
    def stop(self) -> int:
        return self.start + self.count * self.shape[1]


@dataclass(frozen=True)
class PartGroups:
    """The groups of members of equal shape."""

    members: int
    tensors: tuple[TensorGroups, ...]

    @cached_property
    def num_weights(self) -> int:
        """Weights of one member."""
        return max(each.stop for each in self.tensors)

    @cached_property
    def num_groups(self) -> int:
        """Groups of one member."""
        return sum(self.tensor_counts)

    @cached_property
    def is_whole(self) -> bool:
        """Whether each group is one slice of the vector."""
        return self.members == 1 and all(each.count == 1 for each in self.tensors)

    @cached_property
    def tensor_sizes(self) -> list[int]:
        """Weights of each tensor of a member; together all of its weights, in this order."""
        return [each.stop - each.start for each in self.tensors]

    @cached_property
    def tensor_counts(self) -> list[int]:
        """Groups of each tensor of a member; together all of its groups, in this order."""
        return [each.count for each in self.tensors]


@dataclass(frozen=True)
class Groups:
    """The groups of all parts of a weight vector, in this order: part, member, tensor."""

    parts: tuple[PartGroups, ...]

    @classmethod
    def whole(cls, part_sizes: Sequence[int]) -> "Groups":
        """One group for each part."""
        return cls(tuple(PartGroups(1, (TensorGroups(0, (1, n, 1)),)) for n in part_sizes))

    @cached_property
    def part_sizes(self) -> list[int]:
        """Weights of each part, all its members together."""
        return [part.members * part.num_weights for part in self.parts]

    @cached_property
    def part_counts(self) -> list[int]:
        """Groups of each part, all its members together."""
        return [part.members * part.num_groups for part in self.parts]

    @cached_property
    def is_whole(self) -> bool:
        """Whether each group is one slice of the vector."""
        return all(part.is_whole for part in self.parts)

    def sizes(self, like: Tensor, mask: Bool[Tensor, "weights"] | None = None) -> PerGroup:
        """Number of weights of each group that are not pruned."""
        if mask is not None:
            return self.sums(mask.to(like.dtype))
        return self._sizes.like(like)

    @cached_property
    def _sizes(self) -> Constant:
        sizes = torch.zeros(sum(self.part_counts), dtype=torch.float64)
        tensors = (each for part in self.parts for each in part.tensors)
        for each, of_groups in zip(tensors, self.views_of_groups(sizes), strict=True):
            of_groups.fill_(each.shape[1])
        return Constant(tuple(sizes.tolist()))

    def sums(self, values: Vector) -> PerGroup:
        """Sum the values of each group."""
        views, parts = self.views(values), []
        for part in self.parts:
            sums = [next(views).sum(2).flatten(1) for _ in part.tensors]
            parts.append(torch.cat(sums, dim=1).flatten())
        return torch.cat(parts)

    def square_sums(self, values: Vector) -> PerGroup:
        """Sum the squares of each group's values."""
        if not self.is_whole:
            return self.sums(values.square())
        return torch.stack([view.flatten().dot(view.flatten()) for view in self.views(values)])

    def views(self, values: Vector) -> Iterator[Float[Tensor, "members outer size inner"]]:
        """Yield a view of each tensor's values."""
        vectors = torch.split_with_sizes(values, self.part_sizes)
        for part, vector in zip(self.parts, vectors, strict=True):
            rows = vector.view(part.members, -1)
            pieces = torch.split_with_sizes(rows, part.tensor_sizes, 1)
            for each, piece in zip(part.tensors, pieces, strict=True):
                yield piece.view(part.members, *each.shape)

    def views_of_groups(
        self, by_group: PerGroup
    ) -> Iterator[Float[Tensor, "members outer 1 inner"]]:
        """Yield a view of the values of each tensor's groups, which broadcasts against `views`."""
        parts = torch.split_with_sizes(by_group, self.part_counts)
        for part, values in zip(self.parts, parts, strict=True):
            rows = values.view(part.members, -1)
            pieces = torch.split_with_sizes(rows, part.tensor_counts, 1)
            for each, piece in zip(part.tensors, pieces, strict=True):
                outer, _, inner = each.shape
                yield piece.view(part.members, outer, 1, inner)

    def by_part(self, by_group: PerGroup) -> Float[Tensor, "parts"]:
        """Sum the groups of each part."""
        return torch.stack([values.sum() for values in by_group.split(self.part_counts)])

    def totals(self, values: Vector) -> Float[Tensor, "parts"]:
        """Sum the values of each part."""
        return torch.stack([part.sum() for part in values.split(self.part_sizes)])
