"""The noise of one request, for each member or for members together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.prediction.compiled.packed import Packed, PackedNoise
from models.prediction.device import to_device
from models.prediction.fitted import Fitted
from models.prediction.noise import Noise, NoiseCache, NoiseSource
from models.prediction.samplers import DrawNoise, Share

Widths = tuple[int, ...]


@dataclass(frozen=True)
class RequestNoise:
    """Samples of the sequence of (sampler, seed), drawn once and kept in the cache."""

    sources: Mapping[Widths, NoiseSource]
    cache: NoiseCache
    sampler: str
    seed: int
    device: torch.device

    def of_member(self, member: Fitted) -> DrawNoise:
        """Return the function from sample numbers to the normals of the member's live units."""

        def draw(sampler: str, seed: int, start: int, stop: int, widths: Widths) -> Noise:
            blocks = self.sources[widths].draw(sampler, seed, start, stop)
            return tuple(to_device(block, self.device) for block in blocks)

        def cached(start: int, stop: int) -> Noise:
            key = (self.sampler, self.seed, start, stop, member.widths)
            return member.noise(self.cache.get(key, draw))

        return cached

    def packed(self, packed: Packed, shares: Sequence[Share]) -> PackedNoise:
        """Return the normals of all members as compiled kernels read them."""

        def draw(*_: object) -> tuple[Tensor, ...]:
            noises = [
                share.member.noise(
                    self.sources[share.member.widths].draw(
                        self.sampler, self.seed, share.samples.start, share.samples.stop
                    )
                )
                for share in shares
            ]
            return PackedNoise.of(noises, packed.shapes.shape[1]).tensors

        key = (self.sampler, self.seed, 0, shares[-1].samples.stop, packed)
        return PackedNoise.from_tensors(self.cache.get(key, draw))

    def of_members(self, widths: Widths, starts: tuple[int, ...], count: int) -> Noise:
        """Return normals [members · count, width] per layer: `count` samples from each start."""

        def draw(sampler: str, seed: int, starts: tuple[int, ...], widths: Widths) -> Noise:
            numbers = torch.tensor([start + i for start in starts for i in range(count)])
            first = min(starts)
            blocks = self.sources[widths].draw(sampler, seed, first, max(starts) + count)
            return tuple(to_device(block[numbers - first], self.device) for block in blocks)

        return self.cache.get((self.sampler, self.seed, starts, widths), draw)
