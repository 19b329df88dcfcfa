"""Runs the stages of a training run: each reports, can be stopped, and can be resumed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from models.exceptions import Stopped
from models.training.checkpoints import Checkpoints, Resumable
from models.training.progress import ProgressReporter
from models.training.trainer import EpochResult, Observer


@runtime_checkable
class Run(Resumable, Protocol):
    """A stage's work: `Trainer`, `Walker`, `WindowTrainer`."""

    @property
    def epochs(self) -> int:
        """Reports of the whole run."""
        ...

    def run(self, observer: Observer) -> Any: ...


@dataclass
class Stages:
    """What all stages of one run share."""

    reporter: ProgressReporter
    should_stop: Callable[[], bool]
    checkpoints: Checkpoints | None
    checkpoint_seconds: float = 60.0
    saved: float = field(default_factory=time.monotonic)

    def run(self, stage: str, trainer: Run) -> Any:
        """Runs a stage from where an earlier attempt left it: nothing is left of a finished one.

        Raises:
            Stopped: between two mini-batches; the stage's checkpoint is complete then.
        """

        def on_epoch(result: EpochResult) -> None:
            self.reporter.on_epoch(stage, trainer.epochs, result)

        def should_stop() -> bool:
            """Asked between two mini-batches, when a checkpoint is complete."""
            if time.monotonic() - self.saved > self.checkpoint_seconds:
                self._save(stage, trainer)
            return self.should_stop()

        if self.checkpoints:
            self.checkpoints.restore(stage, trainer)
        try:
            state = trainer.run(Observer(on_epoch, should_stop))
        except Stopped:
            self._save(stage, trainer)
            raise
        self._save(stage, trainer)
        self.reporter.finish_stage(trainer.epochs)
        return state

    def _save(self, stage: str, trainer: Run) -> None:
        if self.checkpoints:
            self.checkpoints.save(stage, trainer)
        self.saved = time.monotonic()
