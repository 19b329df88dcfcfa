"""Training problems whose rows are on disk, in a random order.

Everything that needs only some rows takes the first ones, which are a simple random sample. A fit
reads them in their order: mini-batches are neighbours on disk.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from models.config import TrainingConfig
from models.evaluation.calibration import LabelledMixture
from models.features.rows import Rows
from models.features.splits import Folds
from models.inference.method import State
from models.prediction.device import to_device
from models.randomness import derive_seed
from models.tabular.fold_problem import FoldProblem
from models.tabular.problem import RowProblem
from models.training.row_task import RowTask
from models.training.trainer import required

CPU = torch.device("cpu")
HEAD_ROWS = 200_000  # that everything but the fits reads
STEPS = 15_000  # of a fit whose recipe is given
RACE_EPOCHS = 12  # of the fit to all rows of what a race has chosen


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


@dataclass(frozen=True)
class StreamedProblem(RowProblem):
    """Rows on disk of a recipe that is given."""

    stream: Stream = field(kw_only=True)

    def to(self, device: str) -> Any:
        return _to(self, device)

    @property
    def task(self) -> StreamedTask:
        return _task(self, self.stream)

    def refit(self) -> RowProblem:
        raise NotImplementedError("the request is refused: stopping rows are not on disk")

    @property
    def sampled(self) -> Rows:
        return self.rows[:HEAD_ROWS]


@dataclass(frozen=True)
class StreamedFolds(FoldProblem):
    """Rows on disk in folds. What is out of fold is computed for the first rows alone."""

    stream: Stream = field(kw_only=True)

    def to(self, device: str) -> Any:
        return _to(self, device)

    @property
    def task(self) -> StreamedTask:
        members = self.model.network.layout.members
        return replace(_task(self, self.stream), folds=self.folds, members=members)

    def score(self, state: State) -> float:
        return self.head.score(state)

    def thinned(self, most: int) -> FoldProblem:
        return self.head.thinned(most)

    def epochs_on_all_rows(self, best: int) -> int:
        """As many as `MAX_STEPS` allow, or one pass over the rows takes."""
        if self.task.per_epoch == len(self.rows):
            return super().epochs_on_all_rows(best)
        return RACE_EPOCHS

    def out_of_fold(self, state: State) -> Iterator[LabelledMixture]:
        return self.head.out_of_fold(state)

    def calibrated(self, state: State) -> Any:
        return self.head.calibrated(state)

    @property
    def sampled(self) -> Rows:
        return self.rows[:HEAD_ROWS]

    @cached_property
    def head(self) -> FoldProblem:
        """The problem of the first rows, in memory."""
        own = {f.name: getattr(self, f.name) for f in fields(FoldProblem)}
        of_row = self.folds.of_row[:HEAD_ROWS].long()
        rows, folds = self.sampled, Folds(of_row, self.folds.count)
        in_memory = Rows(
            rows.inputs.clone(),
            rows.targets.clone(),
            None if rows.weights is None else rows.weights.clone(),
        )
        own |= {"rows": in_memory.to(self.stream.on), "folds": folds.to(self.stream.on)}
        return FoldProblem(**own)


def _task(problem: StreamedProblem | StreamedFolds, stream: Stream) -> StreamedTask:
    training, rows = problem.model.config.training, problem.rows
    batch = required(training.batch_size, "batch_size")
    expand = problem.model.engine.expand
    return StreamedTask(
        rows,
        problem.ranks,
        expand and expand.to(stream.on),
        stream.mean_weight,
        stream.per_epoch(len(rows), batch),
        on=stream.on,
    )


def _on_device(rows: Rows, device: torch.device) -> Rows:
    weights = None if rows.weights is None else to_device(rows.weights, device)
    return Rows(to_device(rows.inputs, device), to_device(rows.targets, device), weights)


def _to(problem: Any, device: str) -> Any:
    """The same problem with held-out rows on a device; those on disk stay there."""
    moved = {
        name: value.to(device)
        for name in ("stopping", "calibration", "scores")
        if (value := getattr(problem, name)) is not None
    }
    stream = replace(problem.stream, on=torch.device(device))
    return replace(problem, stream=stream, **moved)
