"""The folder through which a worker and its training processes share files.

training.json, data.arrow   the configuration and the columns; written by the worker
stop                        exists after the worker has requested a stop
progress.jsonl              one line per report; written by rank 0, as are the next three
checkpoints/                checkpoints of the training
model/                      the artifact
outcome.json                written last: null, or the error that ended the training
out-of-memory               exists after a rank has run out of memory
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from core.datasets.datasets import read_columns
from models import exceptions
from models.config import ModelConfig
from models.exceptions import InvalidData, ModelError, Stopped
from models.features.columns import Columns
from models.training.progress import Progress


@dataclass(frozen=True)
class Training:
    """The configuration of a training in several processes.

    Args:
        types: the stored type of each column that is read.
        device: `cpu`, or `cuda` with one card per rank.
        checkpoint_seconds: at most, between two checkpoints.
    """

    config: ModelConfig
    types: Mapping[str, str]
    device: str
    checkpoint_seconds: float
    others: tuple[ModelConfig, ...] = ()  # of several targets, which train in one process


_TRAINING, _PROGRESS = TypeAdapter(Training), TypeAdapter(Progress)


@dataclass(frozen=True)
class SharedFolder:
    """The folder of one training."""

    path: Path

    @property
    def data(self) -> Path:
        return self.path / "data.arrow"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def write_training(self, training: Training) -> None:
        (self.path / "training.json").write_bytes(_TRAINING.dump_json(training))

    def read_training(self) -> tuple[Training, Columns]:
        training = _TRAINING.validate_json((self.path / "training.json").read_bytes())
        return training, read_columns(self.data, training.types)

    def request_stop(self) -> None:
        (self.path / "stop").touch()

    def stop_requested(self) -> bool:
        return (self.path / "stop").exists()

    def write_progress(self, progress: Progress) -> None:
        with (self.path / "progress.jsonl").open("ab") as file:
            file.write(_PROGRESS.dump_json(progress) + b"\n")

    def read_progress(self, offset: int) -> tuple[list[Progress], int]:
        """The reports from an offset on, and the offset of the next one.

        A line that is still being written is left for the next call.
        """
        path = self.path / "progress.jsonl"
        if not path.exists():
            return [], offset
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        return [_PROGRESS.validate_json(line) for line in whole.splitlines()], offset + len(whole)

    def mark_out_of_memory(self) -> None:
        (self.path / "out-of-memory").touch()

    def ran_out_of_memory(self) -> bool:
        return (self.path / "out-of-memory").exists()

    def write_outcome(self, error: ModelError | Stopped | None) -> None:
        outcome = None
        if error is not None:
            arguments = [error.message, error.path] if isinstance(error, ModelError) else []
            outcome = {"error": type(error).__name__, "arguments": arguments}
        (self.path / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")

    def has_outcome(self) -> bool:
        """Whether rank 0 has finished, with a model or with an error."""
        return (self.path / "outcome.json").exists()

    def raise_outcome(self) -> None:
        """Raise the error that ended the training, if any: InvalidData, Diverged or Stopped."""
        outcome = json.loads((self.path / "outcome.json").read_text(encoding="utf-8"))
        if outcome is not None:
            kind = getattr(exceptions, outcome["error"], InvalidData)
            raise kind(*outcome["arguments"])
