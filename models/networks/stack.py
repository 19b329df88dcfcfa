"""Several members in one network: parts that differ in inputs, widths and weight of the KL."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.exceptions import InvalidData
from models.networks.members import Members
from models.networks.mlp import MLP
from models.networks.network import Inputs, Masks, Network
from models.posteriors.layout import StackedLayout, Weights, part_name

MAX_MEMBERS = 128


@dataclass(frozen=True)
class MemberLayer:
    """A layer of all members of a part: its tensors have the member axis first."""

    prefix: str
    count: int
    named: dict[str, tuple[int, ...]]
    fan_in: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.prefix}{k}": (self.count, *shape) for k, shape in self.named.items()}


@dataclass(frozen=True)
class Stack:
    """Members in parts. Its outputs have a member axis: [members, rows, outputs].

    Each output is that of one network; nothing is averaged. The flat weight vector has the members
    one after the other (`StackedLayout`).
    """

    parts: tuple[Members, ...]

    @classmethod
    def build(cls, config: MLPConfig, inputs: Inputs, num_outputs: int) -> "Stack":
        """Build the network of a configuration with parts.

        Raises:
            InvalidData: if there are more than `MAX_MEMBERS` members.
        """
        parts = config.parts or ()
        if (members := sum(part.members for part in parts)) > MAX_MEMBERS:
            raise InvalidData(
                f"the parts have {members} members together; at most {MAX_MEMBERS} are allowed",
                "/network/parts",
            )
        return cls(tuple(_members(part, config, inputs, num_outputs) for part in parts))

    @property
    def members(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def networks(self) -> tuple[MLP, ...]:
        """The network of each member."""
        return tuple(part.network for part in self.parts for _ in range(part.count))

    @property
    def layers(self) -> tuple[MemberLayer, ...]:
        """All layers with weights, part by part."""
        return tuple(
            MemberLayer(part_name(i), part.count, layer.shapes(), layer.fan_in)
            for i, part in enumerate(self.parts)
            for layer in part.network.layers
        )

    @cached_property
    def layout(self) -> StackedLayout:
        """Name and shape of each weight tensor, with the member axis first."""
        return StackedLayout.of([(part.count, part.network.layout) for part in self.parts])

    @property
    def num_outputs(self) -> int:
        """Outputs of one member."""
        return self.parts[0].network.num_outputs

    @property
    def widest(self) -> int:
        """Numbers per row in the largest output of a layer, all members of a part together."""
        return max(part.count * part.network.widest for part in self.parts)

    @property
    def operations(self) -> int:
        """Multiplications and additions for one row, all members together."""
        return sum(part.operations for part in self.parts)

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Units per layer that dropout may drop, part by part."""
        return tuple(width for part in self.parts for width in part.mask_widths)

    def noise_widths(self) -> list[int]:
        """Number of standard normals needed per layer and sample, part by part."""
        return [width for part in self.parts for width in part.noise_widths()]

    def select(self, members: Sequence[int]) -> "Stack":
        """Return the stack of some members, by number, ascending.

        Raises:
            ValueError: if the numbers are not ascending, or no members of the stack.
        """
        chosen = list(members)
        if not chosen or chosen != sorted({m for m in chosen if 0 <= m < self.members}):
            raise ValueError(
                f"members {chosen} are not ascending numbers from 0 to {self.members - 1}"
            )
        ends = [sum(part.count for part in self.parts[: i + 1]) for i in range(len(self.parts))]
        counts = [
            sum(end - part.count <= member < end for member in chosen)
            for part, end in zip(self.parts, ends, strict=True)
        ]
        pairs = zip(self.parts, counts, strict=True)
        return Stack(tuple(replace(part, count=count) for part, count in pairs if count))

    def init(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Random initial weights, member by member."""
        vectors = [net.layout.flatten(net.init(generator)) for net in self.networks]
        return self.layout.unflatten(torch.cat(vectors))

    def __call__(
        self,
        weights: Weights,
        x: Float[Tensor, "*samples rows inputs"],
        masks: Masks | None = None,
    ) -> Float[Tensor, "*samples2 members rows outputs"]:
        """Compute outputs; weights [S, members, …] give outputs [S, members, rows, outputs]."""
        owned = self._split(masks, [len(part.mask_widths) for part in self.parts])
        outputs = [
            part(own, x, own_masks)
            for part, own, own_masks in zip(self.parts, self._weights(weights), owned, strict=True)
        ]
        lead = torch.broadcast_shapes(*(part.shape[:-3] for part in outputs))
        return torch.cat([part.expand(*lead, -1, -1, -1) for part in outputs], dim=-3)

    def local(
        self,
        loc: Weights,
        variance: Weights,
        x: Float[Tensor, "rows inputs"],
        noise: Sequence[Float[Tensor, "rows _"]],
    ) -> Float[Tensor, "members rows outputs"]:
        """Compute outputs by local reparameterisation, for training (`Members.local`)."""
        owned = self._split(noise, [len(part.noise_widths()) for part in self.parts])
        moments = zip(self._weights(loc), self._weights(variance), strict=True)
        outputs = [
            part.local(*pair, x, own or [])
            for part, pair, own in zip(self.parts, moments, owned, strict=True)
        ]
        return torch.cat(outputs, dim=-3)

    def _weights(self, weights: Weights) -> Iterator[dict[str, Tensor]]:
        """The tensors of each part, under a member's own names."""
        for i, part in enumerate(self.parts):
            yield {name: weights[f"{part_name(i)}{name}"] for name in part.network.layout.shapes}

    def _split(
        self, blocks: Sequence[Tensor] | None, counts: list[int]
    ) -> list[Sequence[Tensor] | None]:
        if blocks is None:
            return [None] * len(counts)
        starts = [sum(counts[:i]) for i in range(len(counts))]
        return [blocks[i : i + n] for i, n in zip(starts, counts, strict=True)]


def point_shape(network: Network) -> tuple[int, ...]:
    """Return the shape of a likelihood's point parameter: one number, or one per member."""
    return (network.members, 1) if isinstance(network, Stack) else ()


def num_inner_weights(network: Network) -> int:
    """The number of weights before the output layer, without biases; of the largest member."""
    if isinstance(network, Stack):
        return max(map(num_inner_weights, network.networks))
    shapes = [shape for layer in network.layers[:-1] for shape in layer.shapes().values()]
    return sum(math.prod(shape) for shape in shapes if len(shape) > 1)


def _members(part: PartConfig, config: MLPConfig, inputs: Inputs, num_outputs: int) -> Members:
    columns = inputs.plain if part.inputs == "plain" else None
    hidden = MLPConfig(hidden=part.hidden, activation=config.activation)
    width = inputs.width if columns is None else len(columns)
    network = MLP.build(hidden, width, num_outputs, skip=part.skip)
    return Members(network, part.members, columns, part.kl_weight)
