"""Rows as a task: shuffled mini-batches, each shared by all ranks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Generator, Tensor

from models.config import TrainingConfig
from models.config.training import required
from models.device import to_device
from models.features.expansion import Expansion
from models.features.rows import Rows, batches
from models.fitting.distributed import ALONE, Ranks
from models.fitting.loop import Carried
from models.fitting.objectives import Loss


@dataclass(frozen=True)
class RowTask:
    """Rows of a table or windows of series. Mini-batches carry nothing on to the next one.

    Args:
        expand: makes the network inputs of a mini-batch of compact rows.
        mean_weight: of the rows. Losses are divided by it, so that they are per row that the rows
            count as, and step sizes do not depend on the unit of the weights.
        most: rows of an epoch; None means all.
    """

    rows: Rows
    ranks: Ranks = ALONE
    expand: Expansion | None = None
    mean_weight: float = 1.0
    most: int | None = None

    @property
    def device(self) -> torch.device:
        return self.rows.inputs.device

    @property
    def num_data(self) -> int:
        return len(self.rows)

    def num_batches(self, config: TrainingConfig) -> int:
        return -(-self.per_epoch // self._batch_size(config))

    def batches(self, config: TrainingConfig, epoch: int) -> Sequence[Tensor]:
        """The row numbers of each mini-batch."""
        size, seed = self._batch_size(config), config.seed
        return list(batches(len(self.rows), size, seed, epoch, self.per_epoch))

    def take(self, index: Tensor) -> Rows:
        """The rows with these numbers, with all network inputs."""
        rows = self.rows[to_device(index, self.device)]
        return rows if self.expand is None else replace(rows, inputs=self.expand(rows.inputs))

    @cached_property
    def expanded(self) -> Rows:
        """All rows, with all network inputs."""
        return self.take(torch.arange(len(self.rows)))

    def chunks(self, size: int) -> Iterator[Rows]:
        """All rows in turn, `size` at once, with all network inputs."""
        return (self.take(index) for index in torch.arange(len(self.rows)).split(size))

    def loss(
        self,
        method: Any,
        state: Any,
        batch: Tensor,
        *,
        kl_weight: float,
        noise: Generator,
        carried: Carried,
    ) -> tuple[Loss, Carried]:
        part = self.ranks.part(len(batch))
        loss = method.loss(state, self.take(batch[part.rows]), kl_weight, noise, part)
        return loss if self.mean_weight == 1 else loss.divided(self.mean_weight), ()

    def of_epochs(self, share: float) -> "RowTask":
        """The task with a share of the rows in an epoch."""
        return replace(self, most=math.ceil(share * self.per_epoch))

    @property
    def per_epoch(self) -> int:
        """Rows of an epoch."""
        return len(self.rows) if self.most is None else min(self.most, len(self.rows))

    def _batch_size(self, config: TrainingConfig) -> int:
        return min(required(config.batch_size, "batch_size"), len(self.rows))
