"""Scrambled Sobol points and the standard normals made of them.

Quasi-random points fill the unit cube evenly: means over them converge faster than over random
ones. Source of the scrambling: Matoušek 1998, On the L2-discrepancy for anchored boxes. The lower
triangular matrices are fixed. A seed chooses only the digital shift, which is enough to make each
point uniform. A shift costs one pass of exclusive or; new matrices would cost milliseconds.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.quasirandom import SobolEngine

from models.randomness import generator

MAX_DIMENSION = SobolEngine.MAXDIM
BITS = 24  # the precision of float32
_TABLE_BITS = SobolEngine.MAXBIT


@dataclass(frozen=True)
class Sobol:
    """A sequence of points in `dimension` coordinates, each an integer of 24 bits."""

    directions: Int[Tensor, "bits dimension"]

    @classmethod
    def build(cls, dimension: int) -> "Sobol":
        """
        Raises:
            ValueError: if there are no direction numbers for this many coordinates.
        """
        if dimension > MAX_DIMENSION:
            raise ValueError(
                f"a Sobol sequence has at most {MAX_DIMENSION} coordinates; got {dimension}"
            )
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
