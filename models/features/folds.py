"""Folds of rows: which fold each learning row is in, and which fold each member leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import SplitBy, TrainingConfig
from models.randomness import derive_seed
from models.tensors import TensorRecord


@dataclass(frozen=True)
class Folds(TensorRecord):
    """Folds of rows for members that leave out one each: member m leaves out fold m mod `count`.

    Every row then has members that did not learn from it. A fold may be empty.
    """

    of_row: Int[Tensor, "rows"]
    count: int

    def rows(self, fold: int) -> Int[Tensor, "some"]:
        """The numbers of the rows in a fold."""
        return self._by_fold[fold]

    def members(self, fold: int, num_members: int) -> Sequence[int]:
        """The members that leave out the fold."""
        return range(fold, num_members, self.count)

    def weights(self, num_members: int) -> Float[Tensor, "rows members"]:
        """1 where a member learns from a row, 0 where it leaves the row out."""
        left_out = torch.arange(num_members, device=self.of_row.device) % self.count
        return (self.of_row.unsqueeze(1) != left_out).float()

    @cached_property
    def _by_fold(self) -> list[Tensor]:
        return [torch.nonzero(self.of_row == fold).squeeze(1) for fold in range(self.count)]


def assign_folds(
    config: TrainingConfig, count: int, key: np.ndarray | None, classes: np.ndarray | None
) -> Int[Tensor, "rows"]:
    """The fold of each row, of about equal sizes.

    Rows of a group stay together. Of rows in time, a fold is a block. Else folds are random, with
    about the same share of each class.

    Args:
        key: the groups or times of the rows, if the split has a column.
        classes: the class of each row; None for numbers.
    """
    folds = config.folds or 1
    random = np.random.default_rng(derive_seed(config.seed, "folds"))
    if isinstance(config.split, SplitBy) and key is not None:
        return torch.from_numpy(_by_group(key.astype(str), folds, random))
    if config.split == "last" or key is not None:
        order = np.arange(count) if key is None else np.argsort(key, kind="stable")
        return torch.from_numpy(_places(order) * folds // count)
    order = random.permutation(count)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    return torch.from_numpy(_places(order) % folds)


def _places(order: np.ndarray) -> np.ndarray:
    """The place of each row in an order."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def _by_group(key: np.ndarray, folds: int, random: np.random.Generator) -> np.ndarray:
    """Give each group, the largest first, to the smallest fold so far."""
    groups, member, sizes = np.unique(key, return_inverse=True, return_counts=True)
    order = random.permutation(len(groups))
    fold_of, filled = np.zeros(len(groups), dtype=np.int64), np.zeros(folds, dtype=np.int64)
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[member]
