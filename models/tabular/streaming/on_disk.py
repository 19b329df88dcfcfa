"""Rows on disk, in a random order, as a task and as the problem of a training.

Everything that needs only some rows takes the first ones, which are a simple random sample. A fit
reads them in their order: mini-batches are neighbours on disk.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from models.config import TrainingConfig
from models.config.training import required
from models.device import to_device
from models.evaluation.calibration import Calibration, LabelledMixture
from models.features.rows import Rows
from models.features.splits import Folds
from models.fitting.row_task import RowTask
from models.inference.method import State
from models.randomness import derive_seed
from models.tabular.fold_problem import FoldProblem
from models.tabular.row_problem import RowProblem

P = TypeVar("P", bound="RowsOnDisk")

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
class RowsOnDisk(RowProblem):
    """A problem whose `rows` are on disk.

    Args:
        steps: of a fit, at least: it also reads every row once.
        epochs: that the steps are divided into.
        mean_weight: of the rows.
        on: the device that mini-batches are computed on.
    """

    on_disk: ClassVar[Collection[str]] = ("rows", "folds")

    steps: int = field(kw_only=True)
    epochs: int = field(kw_only=True)
    mean_weight: float = field(kw_only=True)
    on: torch.device = field(kw_only=True, default=CPU)

    def to(self: P, device: str) -> P:
        return replace(super().to(device), on=torch.device(device))

    @property
    def task(self) -> StreamedTask:
        expand, num_rows = self.model.engine.expand, len(self.rows)
        batch = required(self.model.config.training.batch_size, "batch_size")
        wanted = max(self.steps * min(batch, num_rows), num_rows)
        return StreamedTask(
            self.rows,
            self.ranks,
            expand and expand.to(self.on),
            self.mean_weight,
            min(num_rows, math.ceil(wanted / self.epochs)),
            on=self.on,
        )

    @property
    def sampled(self) -> Rows:
        return self.rows[:HEAD_ROWS]


@dataclass(frozen=True)
class FoldsOnDisk(RowsOnDisk, FoldProblem):
    """A problem in folds whose rows are on disk: what is no fit asks the problem of the `head`."""

    @property
    def task(self) -> StreamedTask:
        """The rows, of which each member leaves out a fold."""
        return replace(super().task, folds=self.folds, members=self.model.network.layout.members)

    @cached_property
    def head(self) -> FoldProblem:
        """The problem of the first rows, in memory."""
        first = self.sampled
        weights = None if first.weights is None else first.weights.clone()
        rows = Rows(first.inputs.clone(), first.targets.clone(), weights)
        folds = Folds(self.folds.of_row[: len(rows)].long(), self.folds.count)
        own = {f.name: getattr(self, f.name) for f in fields(FoldProblem)}
        return FoldProblem(**own | {"rows": rows.to(self.on), "folds": folds.to(self.on)})

    def score(self, state: State) -> float:
        return self.head.score(state)

    def thinned(self, most: int) -> FoldProblem:
        return self.head.thinned(most)

    def out_of_fold(self, state: State) -> Iterator[LabelledMixture]:
        return self.head.out_of_fold(state)

    def calibrated(self, state: State) -> Calibration:
        return self.head.calibrated(state)

    @property
    def takes_process(self) -> bool:
        return False

    @property
    def takes_trees(self) -> bool:
        return False

    def epochs_on_all_rows(self, best: int) -> int:
        """As many as `steps` allow, or as one pass over all rows takes."""
        is_part = self.task.per_epoch < len(self.rows)
        return self.epochs if is_part else super().epochs_on_all_rows(best)


def _on_device(rows: Rows, device: torch.device) -> Rows:
    weights = None if rows.weights is None else to_device(rows.weights, device)
    return Rows(to_device(rows.inputs, device), to_device(rows.targets, device), weights)
