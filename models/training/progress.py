"""The progress of a training, and the time that it still needs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from models.fitting.loop import EpochResult

_REPORT_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a training.

    Args:
        epoch: finished epochs of the stage.
        epochs: all epochs of the stage.
        fraction: finished share of all stages.
        metrics: in nats per row.
    """

    stage: str
    epoch: int
    epochs: int
    fraction: float
    eta_seconds: float
    metrics: Mapping[str, float | None] = field(default_factory=dict)


class ProgressReporter:
    """Reports the epochs of consecutive stages as one progress.

    These are the first and the last epoch of each stage, and others every half second at most.
    """

    def __init__(self, total_epochs: int, report: Callable[[Progress], None]) -> None:
        self._total, self._report = total_epochs, report
        self._before = 0  # epochs of finished stages
        self._first: float | None = None  # the share that was finished before this process
        self._stage: str | None = None  # of the newest report
        self._started = self._reported = time.monotonic()

    def finish_stage(self, epochs: int) -> None:
        """Count all epochs of a stage as done, also if it ended early or in an earlier attempt."""
        self._before += epochs

    def drop(self, stage: str, epochs: int) -> None:
        """Report that a candidate diverged, as a stage of its own; count all its epochs as done.

        Args:
            stage: the prefix of the candidate's stages, such as `candidate-2-`.
        """
        self._before += epochs
        name, share = f"{stage}diverged", min(1.0, self._before / self._total)
        eta = (time.monotonic() - self._started) * (1 - share) / max(share, 1e-9)
        self._report(
            Progress(stage=name, epoch=epochs, epochs=epochs, fraction=share, eta_seconds=eta)
        )
        self._stage = name

    def expect(self, epochs: int) -> None:
        """Correct the total, once it is known how many epochs are left."""
        self._total = self._before + epochs

    def on_epoch(self, stage: str, epochs: int, result: EpochResult) -> None:
        now = time.monotonic()
        done = (self._before + result.epoch) / self._total
        if self._first is None:
            self._first = done - 1 / self._total
        edge = stage != self._stage or result.epoch == epochs
        if edge or now - self._reported > _REPORT_SECONDS:
            eta = (now - self._started) * (1 - done) / (done - self._first)
            metrics = asdict(result)
            del metrics["epoch"]
            self._report(
                Progress(
                    stage=stage,
                    epoch=result.epoch,
                    epochs=epochs,
                    fraction=done,
                    eta_seconds=eta,
                    metrics=metrics,
                )
            )
            self._stage, self._reported = stage, now
