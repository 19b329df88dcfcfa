"""A posterior prepared for prediction, once, and the samples that pass through it.

The posterior of one network or of several members is a sequence of `Networks`: those of equal shape
that follow each other are stacked, because a small request is all overhead. Eight members one after
the other take three times as long as one network, although the products are the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.inference.bbb import BBBState
from models.inference.noise import RequestNoise, Sobol
from models.networks import MLP, Stack
from models.prediction.compiled.packed import ACTIVATIONS, Packed
from models.prediction.local import Layer, LayerMoments, Networks, Scratch, Units
from models.prediction.pauses import Pause, go_on
from models.prediction.products import Bfloat16Layer, is_large, product_of, rounds

# Weights of a layer in small networks: of 128 units after 128, and of a first layer or linear path,
# which goes by rows, not by samples. The products of larger ones take longer than what is around
# them: they are not stacked, have products of their own, and are not for compiled loops.
MAX_WEIGHTS, MAX_FIRST = 2**14, 2**16

# Largest share of operations that pruning may leave for the smaller network to be used: selecting
# its inputs and noise takes time, too.
_WORTH_SELECTING = 0.7

_MAX_PAIRS = 1_600  # rows × samples of stacked networks: more are faster one by one, in the cache

# Nodes of the quadrature over the outputs, if nothing else is sampled: in all, and per member.
_NODES, _NODES_OF_MEMBER = 128, 16


@dataclass(frozen=True)
class Sampled:
    """Outputs of a network, as moments given each sample's hidden layers and normals to draw them.

    Args:
        moments: means and variances, in any order of memory.
        noise: normals for the outputs of each sample; None if nothing is left to be drawn, and the
            moments are means alone. Rows have the same ones, unless several seeds are beside each
            other.
        counts: the samples of each member, which follow each other.
        column: of the moments, for each sample; None if each has its own.
        integrated: moments of the first output with nothing drawn; None if unknown.
        point: the likelihood's point parameters.
        owners: the member of each sample, if those of a member do not follow each other.
    """

    moments: Float[Tensor, "moments columns rows outputs"]
    noise: Float[Tensor, "samples *_rows outputs"] | None
    counts: tuple[int, ...]
    column: Int[Tensor, "samples"] | None = None
    integrated: Float[Tensor, "2 members rows 1"] | None = None
    point: dict[str, Tensor] = field(default_factory=dict)
    owners: Int[Tensor, "samples"] | None = None

    @cached_property
    def outputs(self) -> Float[Tensor, "moments samples rows outputs"]:
        """The moments of each sample."""
        return self.moments if self.column is None else self.moments[:, self.column]

    @property
    def num_samples(self) -> int:
        return self.moments.shape[1] if self.column is None else len(self.column)

    @cached_property
    def member(self) -> Int[Tensor, "samples"] | None:
        """The member that each sample belongs to; None if there is one member."""
        if self.owners is not None or len(self.counts) == 1:
            return self.owners
        counts = torch.tensor(self.counts)
        return torch.arange(len(counts)).repeat_interleave(counts).to(self.moments.device)

    def drawn(self, *, keep_mean: bool = False) -> Float[Tensor, "samples rows outputs"]:
        """A draw of the outputs; with `keep_mean` the first output stays at its mean."""
        if self.noise is None:
            return self.outputs[0]
        mean, variance = self.outputs
        noise = self.noise.unsqueeze(1) if self.noise.ndim == 2 else self.noise
        drawn = torch.addcmul(mean, variance.sqrt(), noise)
        if keep_mean:
            drawn[..., 0] = mean[..., 0]
        return drawn

    def moved(self, moves: Float[Tensor, "samples rows"], locations: int) -> "Sampled":
        """A copy with the locations of each sample moved (`moved`)."""
        mean, *variance = self.outputs
        moments = torch.stack([moved(mean, moves, locations), *variance])
        return replace(self, moments=moments, column=None)

    @property
    def noise_of_rows(self) -> Float[Tensor, "samples rows outputs"]:
        assert self.noise is not None
        if self.noise.ndim == 3:
            return self.noise
        return self.noise.unsqueeze(1).expand(-1, self.moments.shape[2], -1)

    @classmethod
    def beside(cls, parts: Sequence["Sampled"]) -> "Sampled":
        """Chunks of rows, or the same rows by several seeds, as rows one after the other."""
        if len(parts) == 1:
            return parts[0]
        first, known = parts[0], [part.integrated for part in parts if part.integrated is not None]
        return replace(
            first,
            moments=torch.cat([part.moments for part in parts], 2),
            noise=torch.cat([part.noise_of_rows for part in parts], 1),
            integrated=torch.cat(known, 2) if known else None,
        )

    def double(self) -> "Sampled":
        """A copy in float64, except for the point parameters."""
        noise = None if self.noise is None else self.noise.double()
        integrated = None if self.integrated is None else self.integrated.double()
        return replace(self, moments=self.moments.double(), noise=noise, integrated=integrated)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The posterior of one network or of several members, ready for prediction.

    Args:
        groups: its networks, in the order of the members.
        nodes: of the quadrature over the outputs by moments, for all members together; None means
            all of `output_nodes`.
        widening: of what lies between the copies of a filled row (`Picks`).
    """

    state: BBBState
    groups: tuple[Networks, ...]
    nodes: int | None = None
    widening: float = 1.0

    @classmethod
    @torch.inference_mode()
    def of(cls, network: MLP | Stack, state: BBBState) -> "Fitted":
        if isinstance(network, MLP):
            return cls(state, (_prepared(network, state, None),))
        device = state.posterior.loc.device
        each = state.by_member(network.layout)
        networks = list[Networks]()
        for part in network.parts:
            reads = part.reads.to(device) if isinstance(part.reads, Tensor) else part.reads
            own = each[len(networks) : len(networks) + part.count]
            networks += [_prepared(part.network, member, reads) for member in own]
        return cls(state, _stacked(networks))

    @property
    def members(self) -> int:
        return sum(group.members for group in self.groups)

    @cached_property
    def packed(self) -> Packed | None:
        """The networks as compiled loops read them; None if these do not take all of them."""
        on_processor = self.state.posterior.loc.device.type == "cpu"
        is_known = self.groups[0].activation in ACTIVATIONS
        are_taken = on_processor and is_known and all(map(_is_small, self.groups))
        return Packed.of(self.groups) if are_taken else None

    @cached_property
    def operations(self) -> int:
        """Operations per sample and row: the mean over the members."""
        return sum(group.members * group.operations for group in self.groups) // self.members

    @property
    def max_width(self) -> int:
        return max(group.max_width for group in self.groups)

    @property
    def has_large_layers(self) -> bool:
        """Whether a layer that each sample multiplies is large enough to take most of the time."""
        return any(map(is_large, self._large_layers))

    @property
    def can_round(self) -> bool:
        """Whether products of some layer may be worth bfloat16."""
        return any(map(rounds, self._large_layers))

    @property
    def _large_layers(self) -> list[Layer]:
        """The layers of large networks that each sample multiplies."""
        return [x for group in self.groups if not _is_small(group) for x in group.layers[1:]]

    def rounded(self) -> "Fitted":
        """A copy whose products are in bfloat16, except for those of the first and small layers.

        The first layer reads the inputs, whose digits matter, and costs little, because all samples
        share its products.
        """
        return self._with_layers(
            lambda first: first,
            lambda layer: Bfloat16Layer.of(layer) if rounds(layer) else layer,
        )

    @torch.inference_mode()
    def tuned(self, least: int | None) -> "Fitted":
        """A copy whose large networks have the products that are fastest here (`product_of`).

        Args:
            least: weights of a layer that may be in bfloat16 (`Variant.rounded`); None: none may.
        """
        return self._with_layers(
            lambda first: product_of(first, None),
            lambda layer: product_of(layer, least),
        )

    def _with_layers(
        self, of_first: Callable[[Layer], Layer], of_later: Callable[[Layer], Layer]
    ) -> "Fitted":
        """A copy with other layers in its large networks."""

        def of(group: Networks) -> Networks:
            first, *later = group.layers
            return replace(group, layers=(of_first(first), *map(of_later, later)))

        groups = tuple(group if _is_small(group) else of(group) for group in self.groups)
        return replace(self, groups=groups)

    def shares(self, samples: int) -> tuple[slice, ...]:
        """The samples of each member: divided evenly, one member after the other.

        Fewer samples than members go to evenly spread members.
        """
        return _divided(samples, self.members)

    def points(self, samples: int) -> dict[str, Float[Tensor, "_ 1"]]:
        """The point parameters of each sample; one for all of a single network."""
        known = {name: value.reshape(-1, 1) for name, value in self.state.point.items()}
        if self.members == 1 or not known:
            return known
        owners = _owners(samples, self.members)
        return {name: value[owners.to(value.device)] for name, value in known.items()}

    def sample(
        self,
        x: Float[Tensor, "rows inputs"],
        samples: int,
        noise: RequestNoise,
        at_once: int,
        *,
        integrate: bool,
        pause: Pause = go_on,
    ) -> Sampled:
        """Outputs by local reparameterisation.

        Args:
            samples: of all members together.
            at_once: samples that pass together at most.
            integrate: whether the moments of the first output with nothing drawn are wanted. They
                are known for at most one hidden layer. In a deeper network the last hidden layer
                would be integrated for each sample, which costs more than the samples that it
                saves (docs/benchmarks.md).
            pause: called before each chunk of samples.
        """
        shares = self.shares(samples)
        parts = list(self._parts(shares, min(at_once, _MAX_PAIRS // len(x))))
        pairs = max(len(own) * min(at_once, max(map(_count, own))) for _, own in parts) * len(x)
        scratch = Scratch(pairs, self.max_width, x)
        outputs = self.groups[0].layers[-1].width
        # Allocated once: small results between large temporaries would fragment the heap.
        moments = x.new_empty(2, samples, len(x), outputs)
        normals, exact = x.new_empty(samples, outputs), list[Tensor]()
        for networks, own in parts:
            first = networks.first(networks.inputs(x))
            counts = list(map(_count, own))
            if integrate and len(networks.layers) <= 2:
                known = torch.stack(networks.moments(first))[..., :1]
                exact.append(known if all(counts) else known[:, torch.tensor(counts) > 0])
            most, begin = max(counts), own[0].start
            chosen: Tensor | slice = slice(None)
            if len(set(counts)) > 1:  # all members draw as many, and what is too much is dropped
                index = [i * most + j for i, count in enumerate(counts) for j in range(count)]
                chosen = torch.tensor(index)
            for done in range(0, most, at_once):
                pause()
                count = min(at_once, most - done)
                starts = tuple(share.start + done for share in own)
                blocks = networks.noise(noise.draw(networks.widths, starts, count))
                taken = slice(begin + done, min(own[-1].stop, begin + done + len(own) * count))
                for to, part in zip(moments, networks.outputs(first, blocks, scratch), strict=True):
                    to[taken] = part.flatten(0, 1)[chosen]
                normals[taken] = blocks[-1].flatten(0, 1)[chosen]
        used = tuple(filter(None, map(_count, shares)))
        integrated = torch.cat(exact, 1) if len(exact) == len(parts) else None
        points = self.points(samples)
        return Sampled(moments, normals, used, integrated=integrated, point=points)

    def _parts(
        self, shares: Sequence[slice], at_once: int
    ) -> Iterator[tuple[Networks, Sequence[slice]]]:
        """Networks that have samples: stacked ones whose samples pass at once, or one by one."""
        start = 0
        for group in self.groups:
            own = shares[start : start + group.members]
            start += group.members
            together = own[-1].stop - own[0].start
            if together > at_once and group.members > 1:
                pairs = zip(group.each, own, strict=True)
                yield from ((network, (share,)) for network, share in pairs if _count(share))
            elif together:
                yield group, own

    def propagate(
        self, x: Float[Tensor, "rows inputs"], nodes: Float[Tensor, "nodes outputs"]
    ) -> Sampled:
        """Moments of the outputs by propagation; nodes, divided among members, replace draws."""
        each = [group.moments(group.first(group.inputs(x))) for group in self.groups]
        moments = torch.stack([torch.cat(parts) for parts in zip(*each, strict=True)])
        return self.of_nodes(moments, nodes)

    def of_nodes(
        self,
        moments: Float[Tensor, "2 members rows outputs"],
        nodes: Float[Tensor, "nodes outputs"],
    ) -> Sampled:
        """Moments of each member with its share of the nodes in the place of draws."""
        count = len(nodes)
        column = _owners(count, self.members).to(nodes.device)
        return Sampled(moments, nodes, (count,), column, moments[..., :1], self.points(count))


def moved(
    outputs: Float[Tensor, "samples rows outputs"],
    moves: Float[Tensor, "*samples rows"],
    locations: int,
) -> Float[Tensor, "samples rows outputs"]:
    """Outputs with the first ones, so many locations, moved."""
    there = outputs[..., :locations] + moves.unsqueeze(-1)
    return torch.cat([there, outputs[..., locations:]], dim=-1)


@lru_cache(maxsize=64)
def _divided(samples: int, members: int) -> tuple[slice, ...]:
    ends = [samples * i // members for i in range(members + 1)]
    return tuple(slice(*pair) for pair in pairwise(ends))


@lru_cache(maxsize=64)
def _owners(samples: int, members: int) -> Int[Tensor, "samples"]:
    """The member that each sample belongs to."""
    counts = torch.tensor(list(map(_count, _divided(samples, members))))
    with torch.inference_mode(mode=False):
        return torch.arange(members).repeat_interleave(counts)


def output_nodes(num_outputs: int, num_members: int = 1) -> Float[Tensor, "nodes outputs"]:
    """Evenly spread standard normals, for a quadrature over the outputs of all members."""
    return Sobol.build(num_outputs).normals(0, 0, max(_NODES, _NODES_OF_MEMBER * num_members))


def _count(share: slice) -> int:
    return share.stop - share.start


def _is_small(group: Networks) -> bool:
    first, *later = group.layers
    by_row = [first] if group.path is None else [first, group.path]
    return all(layer.num_weights <= MAX_FIRST for layer in by_row) and all(
        layer.num_weights <= MAX_WEIGHTS for layer in later
    )


def _prepared(network: MLP, state: BBBState, reads: Tensor | slice | None) -> Networks:
    """One network; if it is pruned, only the units that matter remain, if that is worth it.

    Args:
        reads: the columns of the inputs that it reads; None means all.
    """
    posterior = state.posterior
    loc, variance = map(network.layout.unflatten, posterior.distribution().moments())
    layers = tuple(LayerMoments.of(layer, loc, variance) for layer in network.dense)
    path = None if network.path is None else LayerMoments.of(network.path, loc, variance)
    widths = tuple(network.noise_widths())
    whole = Networks(layers, network.activation, path, widths, reads=reads)
    if posterior.mask is None:
        return whole
    inputs, *units = _live_units(network, posterior.mask)
    pairs = zip(layers, (inputs, *units), units, strict=False)
    selected = tuple(layer.select(*ends) for layer, *ends in pairs)
    smaller = replace(
        whole,
        layers=selected,
        path=None if path is None else path.select(inputs, None),
        live=units,
        reads=_among(reads, inputs),
    )
    return smaller if smaller.operations <= _WORTH_SELECTING * whole.operations else whole


def _among(columns: Tensor | slice | None, inputs: Units) -> Tensor | slice | None:
    """The columns of the inputs that remain."""
    if inputs is None:
        return columns
    return columns[inputs] if isinstance(columns, Tensor) else inputs  # a slice is the first ones


def _stacked(networks: Sequence[Networks]) -> tuple[Networks, ...]:
    """Small networks of equal shape that follow each other, in one; the others as they are."""
    groups: list[list[Networks]] = []
    for network in networks:
        last = groups[-1][0] if groups else None
        if last is not None and _is_small(network) and _are_alike(last, network):
            groups[-1].append(network)
        else:
            groups.append([network])
    return tuple(alike[0] if len(alike) == 1 else _stack(alike) for alike in groups)


def _are_alike(one: Networks, other: Networks) -> bool:
    """Whether the networks can be stacked; units of their own remain in pruned ones."""
    pruned = one.live is not None or other.live is not None
    have_paths = [network.path is not None for network in (one, other)]
    alike = one.widths == other.widths and one.reads is other.reads
    return alike and have_paths[0] == have_paths[1] and not pruned


def _stack(networks: Sequence[Networks]) -> Networks:
    def stacked(alike: Iterable[Layer | None]) -> LayerMoments:
        return LayerMoments.stacked([layer for layer in alike if isinstance(layer, LayerMoments)])

    each = zip(*(network.layers for network in networks), strict=True)
    path = networks[0].path and stacked(network.path for network in networks)
    layers = tuple(map(stacked, each))
    return replace(networks[0], layers=layers, path=path, members=len(networks))


def _live_units(network: MLP, mask: Bool[Tensor, "weights"]) -> list[Units]:
    """The inputs, the units of each hidden layer and the outputs that matter under a mask.

    A unit without outgoing weights has no effect. Neither has one without incoming weights and
    bias, because every activation here is 0 at 0. Dropping a unit can make others useless: one
    sweep goes from the inputs to the outputs, a second one back.
    """
    weights = network.layout.unflatten(mask)
    kept = [weights[layer.weight].clone() for layer in network.dense]
    biases = [weights[layer.bias] for layer in network.dense]
    for i in range(len(kept) - 1):
        alive = kept[i].any(1) | biases[i]
        kept[i + 1] &= alive
    for i in reversed(range(len(kept) - 1)):
        kept[i] &= kept[i + 1].any(0).unsqueeze(1)
    inputs = kept[0].any(0)
    if network.path is not None:
        inputs |= weights[network.path.weight].any(0)
    return [_indices(inputs), *(_indices(layer.any(0)) for layer in kept[1:]), None]


def _indices(alive: Bool[Tensor, "units"]) -> Int[Tensor, "live"] | None:
    return None if bool(alive.all()) else torch.nonzero(alive).squeeze(1)
