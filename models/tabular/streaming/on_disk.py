"""Rows on disk, in a random order, as a task.

Everything that needs only some rows takes the first ones, which are a simple random sample. A fit
reads them in their order: mini-batches are neighbours on disk.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from models.config import TrainingConfig
from models.device import to_device
from models.features.rows import Rows
from models.features.splits import Folds
from models.fitting.row_task import RowTask
from models.randomness import derive_seed

CPU = torch.device("cpu")
HEAD_ROWS = 200_000  # that everything but the fits reads


@dataclass(frozen=True)
class StreamedTask(RowTask):
    """Rows on disk whose mini-batches are runs of neighbours.

    An epoch begins where the one before has ended, and moves on by some rows, so that later passes
    have other mini-batches.

    Args:
        folds: which member leaves out which rows; None if the network has no such members.
        on: the device that mini-batches are computed on.
    """

    folds: Folds | None = None
    members: int = 1
    on: torch.device = CPU

    @property
    def device(self) -> torch.device:
        return self.on

    def batches(self, config: TrainingConfig, epoch: int) -> Sequence[Tensor]:
        """The row numbers of each mini-batch."""
        size, rows = self._batch_size(config), len(self.rows)
        shift = derive_seed(config.seed, "start", epoch) % size
        first = epoch * self.per_epoch + shift
        order = torch.arange(first, first + self.per_epoch).remainder_(rows)
        return list(order.tensor_split(self.num_batches(config)))

    def take(self, index: Tensor) -> Rows:
        rows = self.rows[index]
        if self.folds is not None:
            own = Folds(self.folds.of_row[index], self.folds.count).weights(self.members)
            weights = own if rows.weights is None else own * rows.weights.unsqueeze(1)
            rows = replace(rows, weights=weights)
        rows = rows if self.on.type == "cpu" else _on_device(rows, self.on)
        return rows if self.expand is None else replace(rows, inputs=self.expand(rows.inputs))

    def chunks(self, size: int) -> Iterator[Rows]:
        starts = range(0, len(self.rows), size)
        return (self.take(torch.arange(a, min(a + size, len(self.rows)))) for a in starts)


@dataclass(frozen=True)
class Stream:
    """How a problem's rows are read.

    Args:
        steps: of a fit, at least: it also reads every row once.
        epochs: that the steps are divided into.
        mean_weight: of the rows.
    """

    steps: int
    epochs: int
    mean_weight: float = 1.0
    on: torch.device = CPU

    def per_epoch(self, num_rows: int, batch_size: int) -> int:
        """The rows of an epoch."""
        wanted = max(self.steps * min(batch_size, num_rows), num_rows)
        return min(num_rows, math.ceil(wanted / self.epochs))

    def head(self, rows: Rows) -> Rows:
        """The first rows, in memory."""
        first = rows[:HEAD_ROWS]
        weights = None if first.weights is None else first.weights.clone()
        return Rows(first.inputs.clone(), first.targets.clone(), weights).to(self.on)


def _on_device(rows: Rows, device: torch.device) -> Rows:
    weights = None if rows.weights is None else to_device(rows.weights, device)
    return Rows(to_device(rows.inputs, device), to_device(rows.targets, device), weights)
