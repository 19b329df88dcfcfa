"""The noise of a prediction: standard normals that depend only on (seed, layer, sample).

All rows share them. So a row's prediction depends neither on the other rows nor on the chunks that
work is cut into, and equal requests can reuse the noise.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.sobol import MAX_DIMENSION, Sobol
from models.randomness import generator

BLOCK = 64  # samples per generator: small enough to bound memory, large enough to be cheap
DEFAULT_CACHE_BYTES = 32 * 2**20

Noise = tuple[Float[Tensor, "samples _"], ...]
"""One block per layer, as wide as the layer."""
Tensors = tuple[Tensor, ...]


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

    def get(
        self,
        key: tuple[Any, ...],
        draw: Callable[..., Tensors],
    ) -> Tensors:
        """The result of `draw(*key)`, cached; the key begins with (sampler, seed, start, stop)."""
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
