"""The posterior of several members prepared for prediction."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from models.inference.bbb import BBBState
from models.inference.members import split_members
from models.networks import Stack
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.compiled.packed import Packed
from models.prediction.fitted import Fitted
from models.prediction.together import Together, stack_members


@dataclass(frozen=True)
class FittedStack:
    """The posterior of several members, each ready for prediction by itself.

    `nodes` are as of `Fitted`, for all members together.
    """

    posterior: MeanFieldNormal
    point: dict[str, Tensor]
    members: tuple[Fitted, ...]
    nodes: int | None = None

    @classmethod
    @torch.inference_mode()
    def of(cls, network: Stack, state: BBBState) -> "FittedStack":
        columns = [part.reads for part in network.parts for _ in range(part.count)]
        triples = zip(network.networks, split_members(state, network.layout), columns, strict=True)
        members = [Fitted.of(one, own).reading(reads) for one, own, reads in triples]
        return cls(state.posterior, state.point, tuple(members))

    @cached_property
    def together(self) -> tuple[Together, ...]:
        """The members in groups of equal shape, for a few rows; empty if they have none."""
        with torch.inference_mode():
            return stack_members(self.members)

    @cached_property
    def packed(self) -> Packed | None:
        """The members as compiled kernels read them; None if one is not for them."""
        members = self.members
        return Packed.of([one.local for one in members], [one.reads for one in members])

    @property
    def is_compiled(self) -> bool:
        """As `Fitted.is_compiled`: members are compiled together or not at all."""
        return all(member.is_compiled for member in self.members)

    def tuned(self, rounded: int | None) -> "FittedStack":
        """As `Fitted.tuned`."""
        tuned = tuple(member.tuned(rounded) for member in self.members)
        return replace(self, members=tuned)

    @property
    def has_large_layers(self) -> bool:
        """As `Fitted.has_large_layers`."""
        return any(member.has_large_layers for member in self.members)

    @property
    def can_round(self) -> bool:
        """As `Fitted.can_round`."""
        return any(member.can_round for member in self.members)

    def rounded(self) -> "FittedStack":
        """As `Fitted.rounded`."""
        return replace(self, members=tuple(member.rounded() for member in self.members))

    @cached_property
    def operations(self) -> int:
        """Operations per sample and row: the mean over the members."""
        return sum(member.operations for member in self.members) // len(self.members)
