"""Networks, noise and blocks of samples as the plain arrays that kernels read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, chain

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from models.prediction.local import Layer, LayerMoments, LocalNetwork
from models.prediction.noise import Tensors
from models.prediction.standard_error import (
    block_size,
    one_dimensional_share,
    share_of_points,
    whole_blocks,
)

ACTIVATIONS = ("relu", "tanh", "silu", "gelu")  # in the order of the kernels' numbers

MAX_WEIGHTS = 16_384  # of a layer: of 128 units after 128
MAX_FIRST = 65_536  # of the first layer and the linear path, which go by rows, not by samples

Errors = tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]


@dataclass(frozen=True, eq=False)
class Packed:
    """Networks of one activation as `kernels.sample` and `kernels.propagate` read them.

    Args:
        locals: the networks.
        reads: the inputs that each of them reads; None means all.
        shapes: of each layer: inputs, outputs, start of its block in `weights`. A linear path is
            the layer after the last.
        depths: layers without the linear path.
        paths: 1 with a linear path, else 0.
    """

    locals: tuple[LocalNetwork, ...]
    reads: tuple[Tensor | slice | None, ...]
    shapes: Int64[np.ndarray, "members layers 3"]
    depths: Int64[np.ndarray, "members"]
    paths: Int64[np.ndarray, "members"]
    weights: Float32[np.ndarray, "_"]
    _columns: dict[int, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, networks: Sequence[LocalNetwork], reads: Sequence[Tensor | slice | None]
    ) -> "Packed | None":
        """Pack the networks; None if they are too large, or on a device, or not all dense."""
        if not all(map(suits, networks)):
            return None
        stacks = [_layers(network) for network in networks]
        shapes = np.zeros((len(stacks), max(map(len, stacks)), 3), np.int64)
        blocks, start = [], 0
        for m, layers in enumerate(stacks):
            for i, layer in enumerate(layers):
                assert isinstance(layer, LayerMoments), "as `_suits` has found"
                shapes[m, i] = *layer.loc.shape[::-1], start
                blocks.append(_block(layer))
                start += len(blocks[-1])
        depths = np.array([len(network.layers) for network in networks], np.int64)
        paths = np.array([network.skip is not None for network in networks], np.int64)
        return cls(tuple(networks), tuple(reads), shapes, depths, paths, np.concatenate(blocks))

    @cached_property
    def outputs(self) -> int:
        return self.locals[0].widths[-1]

    @cached_property
    def activation(self) -> int:
        """The number of the activation."""
        return ACTIVATIONS.index(self.locals[0].activation)

    @cached_property
    def has_exact(self) -> bool:
        """Whether the mean with nothing drawn is known: of at most one hidden layer."""
        return bool((self.depths <= 2).all())

    def columns(self, inputs: int) -> Int64[np.ndarray, "members read"]:
        """The columns that each network reads, of so many."""
        if inputs not in self._columns:
            every = torch.arange(inputs)
            read = [every if one is None else every[one] for one in self.reads]
            found = np.zeros((len(read), max(map(len, read))), np.int64)
            for row, own in zip(found, read, strict=True):
                row[: len(own)] = own
            self._columns[inputs] = found
        return self._columns[inputs]

    def select(self, chosen: Sequence[int]) -> "Packed":
        """Some of the networks."""
        if len(chosen) == len(self.locals):
            return self
        index = np.array(chosen, np.int64)
        return Packed(
            tuple(self.locals[m] for m in chosen),
            tuple(self.reads[m] for m in chosen),
            self.shapes[index],
            self.depths[index],
            self.paths[index],
            self.weights,
        )


@dataclass(frozen=True)
class PackedNoise:
    """Normals of the hidden layers, [units, samples] each, and of the outputs.

    Args:
        places: where the noise of each member and hidden layer starts in `hidden`.
    """

    hidden: Float32[np.ndarray, "_"]
    outputs: Float32[np.ndarray, "outputs samples"]
    places: Int64[np.ndarray, "members layers"]

    @classmethod
    def of(cls, noises: Sequence[Tensors], layers: int) -> "PackedNoise":
        """Pack the blocks of each member, of at most so many layers."""
        places = np.zeros((len(noises), layers), np.int64)
        blocks, start = [np.zeros(0, np.float32)], 0
        for row, noise in zip(places, noises, strict=True):
            for i, block in enumerate(noise[:-1]):
                row[i] = start
                blocks.append(block.T.contiguous().view(-1).numpy())
                start += block.numel()
        last = torch.cat([noise[-1] for noise in noises]).T.contiguous().numpy()
        return cls(np.concatenate(blocks), last, places)

    @property
    def tensors(self) -> Tensors:
        """As the cache of noise keeps it."""
        return tuple(map(torch.from_numpy, (self.hidden, self.outputs, self.places)))

    @classmethod
    def from_tensors(cls, tensors: Tensors) -> "PackedNoise":
        """The inverse of `tensors`."""
        hidden, outputs, places = (tensor.numpy() for tensor in tensors)
        return cls(hidden, outputs, places)


def _layers(network: LocalNetwork) -> tuple[Layer, ...]:
    return (*network.layers, *(() if network.skip is None else (network.skip,)))


def suits(network: LocalNetwork) -> bool:
    """Whether the kernels compute this network, and faster than products of matrices."""
    first, *later = network.layers
    by_row = [one for one in (first, network.skip) if one is not None]
    return _are_small(by_row, MAX_FIRST) and _are_small(later, MAX_WEIGHTS)


def _are_small(layers: Sequence[Layer], most: int) -> bool:
    return all(
        isinstance(layer, LayerMoments)
        and layer.weight.device.type == "cpu"
        and layer.loc.numel() <= most
        for layer in layers
    )


def _block(layer: LayerMoments) -> Float32[np.ndarray, "_"]:
    """Means, variances and squared means, padded, and the biases' means and variances."""
    outputs, inputs = layer.loc.shape
    padding = (0, -inputs % 4, 0, -outputs % 2)
    weights = [layer.loc, layer.variance, layer.loc.square()]
    pads = [torch.nn.functional.pad(one, padding).flatten() for one in weights]
    biases = [torch.nn.functional.pad(layer.bias[i, 0], (0, padding[3])) for i in range(2)]
    return torch.cat([*pads, *biases]).numpy()


@cache
def errors(counts: tuple[int, ...], *, even: bool) -> Errors:
    """What `kernels.error_of_mean` needs of the members' numbers of samples."""
    total, size = sum(counts), block_size(counts) if even else 1
    blocks = whole_blocks(counts, size) if size > 1 else ()
    firsts = list(chain.from_iterable(range(f, f + n * size, size) for f, n in blocks))
    numbers = tuple(number for _, number in blocks)
    shares = [one_dimensional_share(size), share_of_points(total // len(counts))] if blocks else []
    return (
        _starts(counts),
        np.array(firsts, np.int64),
        _starts(numbers),
        size,
        np.array(shares or [0.0, 0.0]),
    )


def _starts(counts: tuple[int, ...]) -> Int64[np.ndarray, "_"]:
    """Of each member, and their end; as one member if one has a single sample."""
    counts = (sum(counts),) if 1 in counts else counts
    return np.array([0, *accumulate(counts)], np.int64)
