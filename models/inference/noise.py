"""The noise of a prediction: standard normals that depend only on (seed, layer, sample).

All rows share them. So a row's prediction depends neither on the other rows nor on the chunks that
work is cut into, and equal requests can reuse the noise.

Normals are pseudo-random, or made of scrambled Sobol points. These fill the unit cube evenly: means
over them converge faster than over random ones. Source of the scrambling: Matoušek 1998, On the
L2-discrepancy for anchored boxes. The lower triangular matrices are fixed. A seed chooses only the
digital shift, which is enough to make each point uniform. A shift costs one pass of exclusive or;
new matrices would cost milliseconds.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.quasirandom import SobolEngine

from models.device import to_device
from models.randomness import generator

BLOCK = 64  # samples per generator: small enough to bound memory, large enough to be cheap
DEFAULT_CACHE_BYTES = 32 * 2**20
MAX_DIMENSION = SobolEngine.MAXDIM
BITS = 24  # the precision of float32
_TABLE_BITS = SobolEngine.MAXBIT

Noise = tuple[Float[Tensor, "*members samples _"], ...]
"""One block per layer, as wide as the layer."""
Tensors = tuple[Tensor, ...]
Widths = tuple[int, ...]


@dataclass(frozen=True)
class Sobol:
    """A sequence of points in `dimension` coordinates, each an integer of 24 bits."""

    directions: Int[Tensor, "bits dimension"]

    @classmethod
    def build(cls, dimension: int) -> "Sobol":
        """
        Raises:
            ValueError: for more than `MAX_DIMENSION` coordinates.
        """
        table = SobolEngine(dimension).sobolstate >> (_TABLE_BITS - BITS)
        plain = table[:, :BITS].to(torch.int32)
        return cls(_scramble(plain).T.contiguous())

    @property
    def dimension(self) -> int:
        return self.directions.shape[1]

    def points(self, seed: int, start: int, stop: int) -> Int[Tensor, "samples dimension"]:
        """Points start … stop − 1 of the sequence, shifted by the seed."""
        shift = generator(seed, "sobol")
        first = torch.randint(2**BITS, (1, self.dimension), dtype=torch.int32, generator=shift)
        low_bits = (stop - start - 1).bit_length()
        size = 2**low_bits
        blocks = range(start // size, -(-stop // size))
        points = torch.cat([self._block(first, block * size, low_bits) for block in blocks])
        offset = blocks.start * size
        return points[start - offset : stop - offset]

    def normals(self, seed: int, start: int, stop: int) -> Float[Tensor, "samples dimension"]:
        """The same points as standard normals: √2 erf⁻¹(2u − 1), u in the middle of its cell."""
        half = 2 ** (BITS - 1)
        centred = self.points(seed, start, stop) - half
        return centred.float().add_(0.5).div_(half).erfinv_().mul_(math.sqrt(2))

    def _block(
        self, first: Int[Tensor, "1 dimension"], start: int, low_bits: int
    ) -> Int[Tensor, "samples dimension"]:
        """The 2^low_bits points from `start`, a multiple of that number.

        Each bit of the index doubles the points.
        """
        points = first
        for bit in range(low_bits, start.bit_length()):
            if start >> bit & 1:
                points = points ^ self.directions[bit]
        for bit in range(low_bits):
            points = torch.cat([points, points ^ self.directions[bit]])
        return points


def _scramble(plain: Int[Tensor, "dimension bits"]) -> Int[Tensor, "dimension bits"]:
    """Add to each digit, modulo 2, a random choice of the more significant digits."""
    random = generator(0, "sobol matrices")
    scrambled = torch.zeros_like(plain)
    for bit in range(BITS):
        below = torch.randint(2**bit, (len(plain), 1), dtype=torch.int32, generator=random)
        column = below | 2**bit
        scrambled ^= torch.where((plain >> bit & 1).bool(), column, torch.zeros_like(column))
    return scrambled


@dataclass(frozen=True)
class NoiseSource:
    """Standard normals for layers of these widths."""

    widths: tuple[int, ...]

    @property
    def has_sobol(self) -> bool:
        """Whether a Sobol sequence has enough coordinates for all layers together."""
        return sum(self.widths) <= MAX_DIMENSION

    @cached_property
    def sobol(self) -> Sobol:
        return Sobol.build(sum(self.widths))

    def draw(self, sampler: str, seed: int, start: int, stop: int) -> Noise:
        """Samples start … stop − 1 of the endless sequence of (sampler, seed)."""
        if sampler == "sobol":
            # The first coordinates are spread most evenly. The outputs' noise, few coordinates with
            # a large effect each, gets them.
            backwards = self.sobol.normals(seed, start, stop).split(self.widths[::-1], dim=1)
            return backwards[::-1]
        return tuple(
            standard_normal(seed, layer, start, stop, width)
            for layer, width in enumerate(self.widths)
        )


def standard_normal(
    seed: int, layer: int | str, start: int, stop: int, width: int
) -> Float[Tensor, "samples width"]:
    """Rows start … stop − 1 of the endless matrix of pseudo-random normals of (seed, layer)."""
    first, last = start // BLOCK, -(-stop // BLOCK)
    blocks = [
        torch.randn(BLOCK, width, generator=generator(seed, "noise", layer, block))
        for block in range(first, last)
    ]
    offset = first * BLOCK
    return torch.cat(blocks)[start - offset : stop - offset]


class NoiseCache:
    """The noise of the latest requests, up to `max_bytes`. Any number of threads may use it."""

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[Any, ...], Tensors] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...], draw: Callable[..., Tensors]) -> Tensors:
        """The result of `draw(*key)`, kept for the next call with this key."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        noise = draw(*key)
        if _num_bytes(noise) <= self._max_bytes:
            self._keep(key, noise)
        return noise

    def _keep(self, key: tuple[Any, ...], noise: Tensors) -> None:
        with self._lock:
            self._entries[key] = noise
            while sum(map(_num_bytes, self._entries.values())) > self._max_bytes:
                self._entries.popitem(last=False)


def _num_bytes(noise: Sequence[Tensor]) -> int:
    return sum(block.numel() * block.element_size() for block in noise)


@dataclass(frozen=True)
class RequestNoise:
    """Samples of the sequence of (sampler, seed), drawn once and kept in the cache."""

    sources: Mapping[Widths, NoiseSource]
    cache: NoiseCache
    sampler: str
    seed: int
    device: torch.device

    def draw(self, widths: Widths, starts: tuple[int, ...], count: int) -> Noise:
        """Return members × count × width normals per layer: `count` samples from each start."""

        def draw(
            sampler: str, seed: int, starts: tuple[int, ...], count: int, widths: Widths
        ) -> Noise:
            first = min(starts)
            blocks = self.sources[widths].draw(sampler, seed, first, max(starts) + count)
            numbers = torch.tensor(starts).unsqueeze(1) + torch.arange(count) - first
            return tuple(to_device(block[numbers], self.device) for block in blocks)

        return self.cache.get((self.sampler, self.seed, starts, count, widths), draw)
