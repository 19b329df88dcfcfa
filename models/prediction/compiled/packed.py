"""Networks, noise and blocks of samples as the plain arrays that compiled loops read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, chain

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from models.inference.noise import RequestNoise
from models.prediction.local import LayerMoments, Networks
from models.prediction.monte_carlo_error import (
    block_size,
    one_dimensional_share,
    share_of_points,
    whole_blocks,
)

ACTIVATIONS = ("relu", "tanh", "silu", "gelu")  # in the order of the kernels' numbers

Errors = tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]


@dataclass(frozen=True, eq=False)
class Packed:
    """Networks of one activation as `kernels.sample` and `kernels.propagate` read them.

    Args:
        groups: the networks.
        activation: its number.
        shapes: of each layer of each network: inputs, outputs, start of its block in `weights`. A
            linear path is the layer after the last; without one it has no outputs.
        depths: of each network, its layers without the path.
    """

    groups: tuple[Networks, ...]
    activation: int
    shapes: Int64[np.ndarray, "members layers 3"]
    depths: Int64[np.ndarray, "members"]
    weights: Float32[np.ndarray, "_"]
    _columns: dict[int, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: tuple[Networks, ...]) -> "Packed":
        networks = [network for group in groups for network in group.each]
        depths = np.array([len(network.layers) for network in networks], np.int64)
        shapes = np.zeros((len(networks), 1 + depths.max(), 3), np.int64)
        blocks, start = [], 0
        for m, network in enumerate(networks):
            for i, layer in enumerate((*network.layers, network.path)):
                if isinstance(layer, LayerMoments):
                    shapes[m, i] = *layer.weight.shape[:1:-1], start
                    blocks.append(_block(layer))
                    start += len(blocks[-1])
        activation = ACTIVATIONS.index(groups[0].activation)
        return cls(groups, activation, shapes, depths, np.concatenate(blocks))

    @cached_property
    def outputs(self) -> int:
        return self.groups[0].layers[-1].width

    @cached_property
    def has_exact(self) -> bool:
        """Whether the mean with nothing drawn is known: of at most one hidden layer."""
        return bool((self.depths <= 2).all())

    def columns(self, inputs: int) -> Int64[np.ndarray, "members read"]:
        """The columns that each network reads, of so many."""
        if inputs not in self._columns:
            every = torch.arange(inputs)
            read = [
                every if group.reads is None else every[group.reads]
                for group in self.groups
                for _ in range(group.members)
            ]
            columns = np.zeros((len(read), max(map(len, read))), np.int64)
            for row, own in zip(columns, read, strict=True):
                row[: len(own)] = own
            self._columns[inputs] = columns
        return self._columns[inputs]

    def noise(self, shares: Sequence[slice], noise: RequestNoise) -> tuple[np.ndarray, ...]:
        """The normals of all members that have samples, drawn once and kept in the cache.

        Returns:
            Those of the hidden layers, [units, samples] each, one after the other; where those of
            each member and layer start [members, layers]; and of the outputs [outputs, samples].
        """

        def draw(*_: object) -> tuple[Tensor, ...]:
            groups = [group for group in self.groups for _ in range(group.members)]
            used = [
                pair for pair in zip(groups, shares, strict=True) if pair[1].stop > pair[1].start
            ]
            places = torch.zeros(len(used), self.shapes.shape[1], dtype=torch.long)
            blocks, last, start = [torch.zeros(0)], [], 0
            for row, (group, own) in zip(places, used, strict=True):
                source = noise.sources[group.widths]
                drawn = group.noise(source.draw(noise.sampler, noise.seed, own.start, own.stop))
                for i, block in enumerate(drawn[:-1]):
                    row[i] = start
                    blocks.append(block.T.flatten())
                    start += block.numel()
                last.append(drawn[-1])
            return torch.cat(blocks), places, torch.cat(last).T.contiguous()

        key = (noise.sampler, noise.seed, 0, shares[-1].stop, self)
        return tuple(tensor.numpy() for tensor in noise.cache.get(key, draw))


def _block(layer: LayerMoments) -> Float32[np.ndarray, "_"]:
    """Means, variances and squared means, padded, and the biases' means and variances."""
    outputs, inputs = layer.weight.shape[2:]
    padding = (0, -inputs % 4, 0, -outputs % 2)
    weights = [layer.loc[0], layer.variance[0], layer.squared_loc[0]]
    pads = [torch.nn.functional.pad(weight, padding).flatten() for weight in weights]
    biases = [torch.nn.functional.pad(layer.bias[0, i, 0], (0, padding[3])) for i in range(2)]
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
