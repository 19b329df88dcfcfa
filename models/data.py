"""Encoded rows on a device, and how they are split and served in mini-batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from models.config import Split, SplitBy
from models.exceptions import InvalidData
from models.randomness import derive_seed, generator


@dataclass(frozen=True)
class Rows:
    """Network inputs, encoded targets and, if a column gives them, the rows' weights."""

    inputs: Float[Tensor, "rows features"]
    targets: Shaped[Tensor, "rows"]
    weights: Float[Tensor, "rows"] | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: Tensor | slice) -> "Rows":
        weights = None if self.weights is None else self.weights[index]
        return Rows(self.inputs[index], self.targets[index], weights)

    def weigh(self, values: Float[Tensor, "rows"]) -> Float[Tensor, "rows"]:
        """A row of weight 2 counts as two rows."""
        return values if self.weights is None else values * self.weights

    @classmethod
    def concatenate(cls, first: "Rows", second: "Rows") -> "Rows":
        """The rows of both; either both have weights or neither has."""
        weights = None
        if first.weights is not None and second.weights is not None:
            weights = torch.cat([first.weights, second.weights])
        inputs = torch.cat([first.inputs, second.inputs])
        return cls(inputs, torch.cat([first.targets, second.targets]), weights)

    def to(self, device: str | torch.device) -> "Rows":
        weights = None if self.weights is None else self.weights.to(device)
        return Rows(self.inputs.to(device), self.targets.to(device), weights)


def batches(num_rows: int, batch_size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """The mini-batches of one epoch, as row numbers in an order of (seed, epoch) alone."""
    order = torch.randperm(num_rows, generator=generator(seed, "order", epoch))
    return iter(order.split(batch_size))


def split_rows(
    split: Split, fraction: float, seed: int, num_rows: int, key: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train on and to hold out, each in their original order.

    Args:
        key: the column that `SplitBy` or `SplitTime` names; None for `random` and `last`.

    Raises:
        InvalidData: if one of the two sides would be empty.
    """
    random = np.random.default_rng(derive_seed(seed, "split"))
    wanted = max(1, round(fraction * num_rows))
    if split == "last":
        held_out = np.arange(num_rows - wanted, num_rows)
    elif key is None:
        held_out = random.permutation(num_rows)[:wanted]
    elif isinstance(split, SplitBy):
        held_out = _whole_groups(key, wanted, random)
    else:
        held_out = np.argsort(key, kind="stable")[num_rows - wanted :]
    chosen = np.zeros(num_rows, dtype=bool)
    chosen[held_out] = True
    if chosen.all() or not chosen.any():
        raise InvalidData(
            f"holding out {fraction:g} of {num_rows} rows leaves one side of the split empty",
            "/training/split",
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _whole_groups(key: np.ndarray, wanted: int, random: np.random.Generator) -> np.ndarray:
    """Random whole groups until they have the wanted number of rows."""
    groups, member = np.unique(key.astype(str), return_inverse=True)
    order = random.permutation(len(groups))
    sizes = np.bincount(member)[order]
    count = min(int(np.searchsorted(np.cumsum(sizes), wanted)) + 1, len(groups) - 1)
    return np.flatnonzero(np.isin(member, order[:count]))
