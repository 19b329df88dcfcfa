"""Encoded rows and their mini-batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from models.randomness import generator
from models.tensors import TensorRecord

_ADDED = 2**20  # weights at once, which may be on disk


@dataclass(frozen=True)
class Rows(TensorRecord):
    """Network inputs, encoded targets and, if a column has them, the weights of the rows.

    `offsets` are what a process below the networks says of rows that it was fitted to, without
    their own folds (`models.inference.gaussian_process`).
    """

    inputs: Float[Tensor, "rows features"]
    targets: Shaped[Tensor, "rows"]
    weights: Float[Tensor, "rows *members"] | None = None
    offsets: Float[Tensor, "rows 2"] | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: Tensor | slice) -> "Rows":
        weights, offsets = (
            None if part is None else part[index] for part in (self.weights, self.offsets)
        )
        return Rows(self.inputs[index], self.targets[index], weights, offsets)

    def weigh(self, values: Float[Tensor, "*samples rows"]) -> Float[Tensor, "*samples rows"]:
        """Multiply by the weights: a row of weight 2 counts as two rows.

        Weights [rows, members] are for values [..., members, rows]: a member that leaves out a row
        has weight 0 for it.
        """
        if self.weights is None:
            return values
        return values * (self.weights if self.weights.ndim == 1 else self.weights.mT)

    @property
    def weight(self) -> float:
        """The number of rows that these rows count as: the sum of their weights."""
        if self.weights is None:
            return float(len(self))
        return float(sum(part.double().sum() for part in self.weights.split(_ADDED)))

    @classmethod
    def concatenate(cls, parts: Sequence["Rows"]) -> "Rows":
        """Join sets of rows. Either all must have weights or none."""
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            torch.cat([part.inputs for part in parts]),
            torch.cat([part.targets for part in parts]),
            torch.cat(weights) if weights else None,
        )


def batches(
    num_rows: int, batch_size: int, seed: int, epoch: int, most: int | None = None
) -> Iterator[Tensor]:
    """Row numbers of one epoch's mini-batches; their order depends only on seed and epoch.

    An epoch has N rows: all, or `most` of them. There are ⌈N/B⌉ mini-batches, whose sizes differ by
    one at most: otherwise a few leftover rows would take a step of their own, with a gradient of
    many times the noise. In a shuffled order each mini-batch is a simple random sample, so that its
    mean is unbiased whatever its size.
    """
    order = torch.randperm(num_rows, generator=generator(seed, "order", epoch))[:most]
    return iter(order.tensor_split(max(1, -(-len(order) // batch_size))))


def evenly_spread(num_rows: int, most: int) -> Tensor:
    """Numbers of at most `most` rows, evenly spread."""
    return torch.linspace(0, num_rows - 1, min(num_rows, most)).long()
