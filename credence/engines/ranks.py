"""One of the processes that train a model together: `credence.engines.torchrun` starts it."""

import argparse
import hashlib
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from core.exceptions import CredenceError, Invalid
from core.process.freed_memory import keep_freed_memory
from core.registry import archives
from credence.engines import files
from credence.engines.training import Training, read_training
from models.artifact.files import write_model
from models.exceptions import ModelError, Stopped
from models.fitting.distributed import Ranks, is_lost, joined
from models.model import TrainedModel
from models.prediction.threads import training_threads
from models.training.progress import Progress
from models.training.train import TrainingRun, train

_IN_ONE_PROCESS = ("forecasting", "language_model")  # a step depends on the ones before


class TrainingFailed(Exception):
    """A training ended without a model; the message says why."""


class RankLost(TrainingFailed):
    """Another rank, or the connection to it, was lost."""


@dataclass(frozen=True)
class Arguments:
    """What is trained from what, and where the model goes.

    Each of `config`, `data` and `to` is a path, or s3://bucket/key.

    Args:
        config: a JSON file with the settings of `POST /train`, without model and data set.
        data: Parquet, Arrow or CSV: a file or a folder of files.
        to: the archive that rank 0 writes.
        checkpoints: a folder of rank 0. A training that finds its checkpoints there goes on.
        device: `cpu`, or `cuda` with one card per rank.
    """

    config: str
    data: str
    to: str
    checkpoints: Path | None = None
    device: str = "cpu"

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--config", required=True, help="JSON: the settings of POST /train")
        parser.add_argument("--data", required=True, help="Parquet, Arrow or CSV: file or folder")
        parser.add_argument("--to", required=True, help="the archive of the model, model.tar")
        parser.add_argument("--checkpoints", type=Path, help="folder; go on from what is there")
        parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "Arguments":
        return cls(parsed.config, parsed.data, parsed.to, parsed.checkpoints, parsed.device)


def run_rank(arguments: Arguments, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Train with the other ranks. Rank 0 writes the model.

    Raises:
        TrainingFailed: there is no model. All ranks raise it for a wrong setting or column.
        RankLost: another rank ended.
    """
    keep_freed_memory()
    try:
        training = read_training(
            files.read_table(arguments.data), files.read_settings(arguments.config)
        )
        with joined(arguments.device) as device:
            _train(arguments, training, device, should_stop)
    except Stopped as error:
        advice = _advice(arguments)
        raise TrainingFailed(f"the training was stopped before its end: {advice}") from error
    except Invalid as error:
        raise TrainingFailed("; ".join(": ".join(pair) for pair in error.errors)) from error
    except ModelError as error:
        raise TrainingFailed(f"{error.path}: {error.message}") from error
    except (CredenceError, OSError, ValueError) as error:
        raise TrainingFailed(str(error)) from error
    except (MemoryError, torch.OutOfMemoryError) as error:
        advice = "give a smaller training.batch_size or network.hidden"
        raise TrainingFailed(f"not enough memory on {socket.gethostname()}: {advice}") from error
    except Exception as error:
        if not is_lost(error):
            raise
        message = f"another rank was lost, or the connection to it: {_advice(arguments)}"
        raise RankLost(message) from error


def _train(
    arguments: Arguments, training: Training, device: str, should_stop: Callable[[], bool]
) -> None:
    ranks = Ranks.current()
    if ranks.leads:
        files.check_writable(arguments.to)
    _check(training, ranks)
    torch.set_num_threads(training_threads(training.config, torch.get_num_threads(), ranks.size))
    run = TrainingRun(_report, should_stop, arguments.checkpoints)
    model = train(training.columns, training.types, training.config, run, device)
    if ranks.leads:
        _write(model, arguments.to)


def _check(training: Training, ranks: Ranks) -> None:
    """Raise `ValueError` if this training needs one process, or not all ranks have the same one."""
    task = training.config.task
    if ranks.size > 1 and task in _IN_ONE_PROCESS:
        raise ValueError(f"task: {task!r} trains in one process, not in {ranks.size}")
    own = _digest(training)
    if ranks.share(lambda: own) != own:
        message = f"rank {ranks.rank} read other rows or settings than rank 0"
        raise ValueError(f"{message}: give all ranks the same files")


def _digest(training: Training) -> bytes:
    """What tells rows and settings apart: sums would differ between processors."""
    rows = len(next(iter(training.columns.values())))
    seen = [
        (one.name, one.type, one.missing, one.min, one.max, one.levels) for one in training.profiles
    ]
    return hashlib.sha256(repr((rows, seen, training.config)).encode()).digest()


def _write(model: TrainedModel, place: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder, archive = Path(temporary) / "model", Path(temporary) / "model.tar"
        write_model(model, folder)
        with archive.open("wb") as file:
            file.writelines(archives.pack(folder))
        files.write_whole(place, archive)


def _report(progress: Progress) -> None:
    """Rank 0 writes a line, twice a second at most."""
    left = f"{progress.eta_seconds:.0f} s left"
    sys.stderr.write(f"{progress.stage}: {100 * progress.fraction:.0f} %, {left}\n")


def _advice(arguments: Arguments) -> str:
    if arguments.checkpoints is None:
        return "start it again; with --checkpoints it would go on where it was"
    return f"start it again, and it goes on from its checkpoints in {arguments.checkpoints}"
