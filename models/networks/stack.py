"""Several members in one network: parts that differ in inputs, widths and weight of the KL."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from models.config import MLPConfig, PartConfig
from models.exceptions import InvalidData
from models.layers.layer import Layer
from models.networks.mlp import MLP
from models.networks.network import Batch, Inputs, LocallyDrawn, Masks, Network, Noise
from models.posteriors.layout import StackedLayout, Weights, part_name

MAX_MEMBERS = 128

OfMembers = Float[Tensor, "*samples2 members batch outputs"]


@dataclass(frozen=True)
class Members:
    """`count` networks of equal shape that read the same rows, as one batched product per layer.

    Each has its own weights; every tensor has the network axis first.

    Args:
        network: one member.
        columns: the inputs that the members read; None means all.
        kl_weight: weight of the members' KL relative to the ELBO; None means the method's.
    """

    network: MLP
    count: int
    columns: tuple[int, ...] | None = None
    kl_weight: float | None = None

    @cached_property
    def reads(self) -> Int[Tensor, "read"] | slice | None:
        """The index of the columns that the members read; None means all."""
        if self.columns is None:
            return None
        if self.columns == tuple(range(len(self.columns))):
            return slice(0, len(self.columns))
        return torch.tensor(self.columns, dtype=torch.int64)

    def read(self, x: Float[Tensor, "*samples rows inputs"]) -> Float[Tensor, "*samples rows read"]:
        """Return the columns that the members read."""
        index = self.reads
        if index is None:
            return x
        return x[..., index.to(x.device) if isinstance(index, Tensor) else index]

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> OfMembers:
        """Compute the outputs of weights [members, …] or [S, members, …].

        Args:
            x: the rows, or rows of its own for each sample.
            masks: of each hidden layer: [rows, members · units], or [S, 1, members · units].
        """
        x = self.read(x)
        shapes = self.network.layout.shapes.items()
        lead = weights[next(iter(shapes))[0]].shape[: -len(next(iter(shapes))[1])]
        if masks and masks[0].ndim == 3 and len(lead) == 1:
            return self._masked(weights, x, masks)
        blocks = None if masks is None else [self._by_member(m).flatten(0, -3) for m in masks]
        if x.ndim == 3:  # all members of a sample read its rows
            x = x.unsqueeze(1).expand(*lead, -1, -1).flatten(0, 1)
        flat = {name: weights[name].reshape(-1, *shape) for name, shape in shapes}
        return self.network(flat, x, blocks).unflatten(0, lead)

    def _masked(
        self, weights: Weights, x: Float[Tensor, "rows inputs"], masks: Masks
    ) -> Float[Tensor, "samples members rows outputs"]:
        """Compute outputs of S masks on the same weights, without S copies of the weights."""
        samples, rows = len(masks[0]), x.shape[-2]
        blocks = [
            self._by_member(mask).expand(-1, -1, rows, -1).movedim(0, 1).flatten(1, 2)
            for mask in masks
        ]
        repeated = x.expand(samples, -1, -1).flatten(0, 1)
        outputs = self.network(weights, repeated, blocks)
        return outputs.unflatten(-2, (samples, rows)).movedim(-3, 0)

    def local(self, loc: Weights, variance: Weights, x: Batch, noise: Noise) -> OfMembers:
        """Compute outputs by local reparameterisation, as `MLP.local`, for training.

        Args:
            noise: per layer [rows, members · width]: a draw for each row and member.
        """
        blocks = [self._by_member(block) for block in noise]
        return self.network.local(loc, variance, self.read(x), blocks)

    def _by_member(
        self, values: Float[Tensor, "*samples rows members_and_units"]
    ) -> Float[Tensor, "*samples members rows units"]:
        return values.unflatten(-1, (self.count, -1)).movedim(-2, -3)


@dataclass(frozen=True)
class MemberLayer(Layer):
    """A layer of all members of a part: its tensors have the member axis first."""

    part: int
    count: int
    of_member: Layer

    @property
    def fan_in(self) -> int:
        return self.of_member.fan_in

    def shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = self.of_member.shapes().items()
        return {f"{part_name(self.part)}{name}": (self.count, *shape) for name, shape in shapes}


@dataclass(frozen=True)
class Stack(LocallyDrawn):
    """Members in parts. Its outputs have a member axis: [members, rows, outputs].

    Each output is that of one network; nothing is averaged. The flat weight vector has the members
    one after the other (`StackedLayout`).
    """

    parts: tuple[Members, ...]

    @classmethod
    def build(
        cls, config: MLPConfig, inputs: Inputs, num_outputs: int, of_noise: int = 0
    ) -> "Stack":
        """Build the network of a configuration with parts.

        Args:
            of_noise: how many of the outputs, the last ones, describe the noise.

        Raises:
            InvalidData: if there are more than `MAX_MEMBERS` members.
        """
        parts = config.parts or ()
        if (members := sum(part.members for part in parts)) > MAX_MEMBERS:
            raise InvalidData(
                f"the parts have {members} members together; at most {MAX_MEMBERS} are allowed",
                "/network/parts",
            )
        ends = num_outputs, of_noise
        return cls(tuple(_members(part, config, inputs, *ends) for part in parts))

    @property
    def members(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def networks(self) -> tuple[MLP, ...]:
        """The network of each member."""
        return tuple(part.network for part in self.parts for _ in range(part.count))

    @property
    def layers(self) -> tuple[MemberLayer, ...]:
        """Part by part."""
        return tuple(
            MemberLayer(f"{part_name(i)}{layer.name}", i, part.count, layer)
            for i, part in enumerate(self.parts)
            for layer in part.network.layers
        )

    @cached_property
    def layout(self) -> StackedLayout:
        return StackedLayout.of([(part.count, part.network.layout) for part in self.parts])

    @property
    def num_outputs(self) -> int:
        return self.parts[0].network.num_outputs

    @property
    def widest(self) -> int:
        return max(part.count * part.network.widest for part in self.parts)

    @property
    def operations(self) -> int:
        return sum(part.count * part.network.operations for part in self.parts)

    @property
    def mask_widths(self) -> tuple[int, ...]:
        """Part by part, the units of all members of a part together."""
        return tuple(p.count * width for p in self.parts for width in p.network.mask_widths)

    def noise_widths(self) -> list[int]:
        """Part by part, for all members of a part together."""
        return [p.count * width for p in self.parts for width in p.network.noise_widths()]

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
        numbers = [i for i, part in enumerate(self.parts) for _ in range(part.count)]
        counts = Counter(numbers[member] for member in chosen)
        return Stack(tuple(replace(self.parts[i], count=n) for i, n in sorted(counts.items())))

    def init(self, generator: Generator) -> dict[str, Tensor]:
        """Member by member."""
        vectors = [net.layout.flatten(net.init(generator)) for net in self.networks]
        return self.layout.unflatten(torch.cat(vectors))

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> OfMembers:
        owned = self._split(masks, [len(part.network.mask_widths) for part in self.parts])
        outputs = [
            part(own, x, own_masks)
            for part, own, own_masks in zip(self.parts, self._weights(weights), owned, strict=True)
        ]
        lead = torch.broadcast_shapes(*(part.shape[:-3] for part in outputs))
        return torch.cat([part.expand(*lead, -1, -1, -1) for part in outputs], dim=-3)

    def local(self, loc: Weights, variance: Weights, x: Batch, noise: Noise) -> OfMembers:
        """Compute outputs by local reparameterisation, for training (`Members.local`)."""
        owned = self._split(noise, [len(part.network.noise_widths()) for part in self.parts])
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


def _members(
    part: PartConfig, config: MLPConfig, inputs: Inputs, num_outputs: int, of_noise: int
) -> Members:
    columns = _columns(part, inputs)
    hidden = MLPConfig(hidden=part.hidden, activation=config.activation)
    width = inputs.width if columns is None else len(columns)
    network = MLP.build(hidden, width, num_outputs, of_noise if part.noise_path else 0)
    return Members(network, part.members, columns, part.kl_weight)


def _columns(part: PartConfig, inputs: Inputs) -> tuple[int, ...] | None:
    """The inputs that members read; None means all."""
    if part.inputs == "none":
        return inputs.boosted
    plain = inputs.plain if part.inputs == "plain" else None
    if not inputs.boosted:
        return plain
    if plain is None:
        return None if part.boosted else tuple(range(inputs.width - len(inputs.boosted)))
    return plain + inputs.boosted if part.boosted else plain
