"""The loop that all stages of a training share. It can be stopped and resumed at any step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from models.config import Json, TrainingConfig
from models.exceptions import Stopped
from models.fitting.distributed import Ranks
from models.fitting.objectives import Loss

Carried = tuple[tuple[Tensor, ...], ...]
"""What a mini-batch passes on to the next one: a text's hidden states by layer. Empty for rows."""


@dataclass(frozen=True)
class EpochResult:
    """The losses of one epoch, as means over its mini-batches, in nats per row or token."""

    epoch: int
    nelbo: float
    nll: float
    kl: float
    held_out_log_likelihood: float | None


@runtime_checkable
class Task(Protocol):
    """The data that a method is fitted to: rows of a table, windows of series, or a text."""

    @property
    def device(self) -> torch.device: ...

    @property
    def ranks(self) -> Ranks:
        """The processes that share each mini-batch."""
        ...

    @property
    def num_data(self) -> int:
        """Number of likelihood terms: rows, or tokens of a text."""
        ...

    def num_batches(self, config: TrainingConfig) -> int:
        """Number of mini-batches in an epoch."""
        ...

    def batches(self, config: TrainingConfig, epoch: int) -> Sequence[Any]:
        """The mini-batches of an epoch for `loss`; their order depends only on (seed, epoch)."""
        ...

    def loss(
        self,
        method: Any,
        state: Any,
        batch: Any,
        *,
        kl_weight: float,
        noise: Generator,
        carried: Carried,
    ) -> tuple[Loss, Carried]:
        """This process's part of a mini-batch's loss, and what it passes on to the next one.

        Args:
            carried: what the previous mini-batch passed on; empty at the start of an epoch.
        """
        ...


def ignore(result: EpochResult) -> None:
    """An `on_epoch` that does nothing."""


def never() -> bool:
    """A `should_stop` that lets a run go on."""
    return False


@dataclass
class Run(ABC):
    """Steps over the mini-batches of a task. Equal seeds give equal numbers, also after a resume.

    All randomness is a function of (seed, step), so that tensors and counters are the whole state.
    """

    task: Task
    config: TrainingConfig
    step: int = field(default=0, init=False)
    history: list[EpochResult] = field(default_factory=list, init=False)
    _batches: Sequence[Any] = field(default=(), init=False, repr=False)

    @property
    @abstractmethod
    def epochs(self) -> int:
        """Number of reports in the whole run."""

    @property
    @abstractmethod
    def finished(self) -> bool: ...

    @property
    @abstractmethod
    def result(self) -> Any:
        """The state that a finished run returns."""

    @abstractmethod
    def advance(self) -> EpochResult | None:
        """Take one step; return a report if an epoch has ended."""

    @abstractmethod
    def pack(self) -> tuple[dict[str, Tensor], Json]:
        """Tensors and counters of the run itself, beside its step and history."""

    @abstractmethod
    def unpack(self, tensors: dict[str, Tensor], counters: Json) -> None:
        """The inverse of `pack`."""

    def run(
        self,
        on_epoch: Callable[[EpochResult], None] = ignore,
        should_stop: Callable[[], bool] = never,
    ) -> Any:
        """Runs to the end and returns `result`.

        Raises:
            Stopped: between two steps, once `should_stop` returns True.
            Diverged: if a number is not finite.
        """
        while not self.finished:
            if should_stop():
                raise Stopped
            report = self.advance()
            if report is not None:
                self.history.append(report)
                on_epoch(report)
        return self.result

    def saved(self) -> tuple[dict[str, Tensor], Json]:
        """All tensors and counters that a resumed run needs."""
        tensors, counters = self.pack()
        history = [asdict(result) for result in self.history]
        return tensors, {**counters, "step": self.step, "history": history}

    def resume(self, tensors: dict[str, Tensor], counters: Json) -> None:
        """Continues from what `saved` returned."""
        self.unpack(tensors, counters)
        self.step = counters["step"]
        self.history = [EpochResult(**result) for result in counters["history"]]

    def _next_batch(self) -> tuple[int, Any]:
        """The next mini-batch, after its number within the epoch."""
        epoch, number = divmod(self.step, self.task.num_batches(self.config))
        if number == 0 or not self._batches:
            self._batches = self.task.batches(self.config, epoch)
        return number, self._batches[number]
