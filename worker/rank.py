"""One of several processes that train a model: `torchrun … -m worker.rank FOLDER`.

All ranks read the same folder (`worker.shared_folder`); only rank 0 writes to it.
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist

from core.process.freed_memory import keep_freed_memory
from core.process.parent import stop_with_stdin
from models.artifact.files import write_model
from models.exceptions import ModelError, Stopped
from models.features.columns import Columns
from models.fitting.distributed import joined
from models.model import TrainedModel
from models.training.train import TrainingRun, train
from worker.shared_folder import SharedFolder, Training


def main() -> None:
    parser = argparse.ArgumentParser(prog="worker.rank", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when it closes")
    arguments = parser.parse_args()
    if arguments.stop_with_stdin:
        stop_with_stdin(grace_seconds=1.0)
    run_rank(SharedFolder(arguments.folder))


def run_rank(folder: SharedFolder) -> None:
    """Train with the other ranks. Rank 0 writes the model, or the error that all ranks have."""
    keep_freed_memory()
    training, columns = folder.read_training()
    with joined(training.device) as device:
        model, error = _fit(folder, training, columns, device)
        if dist.get_rank() == 0:
            if model is not None:
                write_model(model, folder.model)
            folder.write_outcome(error)


def _fit(
    folder: SharedFolder, training: Training, columns: Columns, device: str
) -> tuple[TrainedModel | None, ModelError | Stopped | None]:
    """The model, or the error that all ranks have."""
    run = TrainingRun(
        folder.write_progress,
        folder.stop_requested,
        folder.checkpoints,
        training.checkpoint_seconds,
    )
    try:
        model = train(columns, training.types, training.config, run, device)
    except (ModelError, Stopped) as error:
        return None, error
    except (MemoryError, torch.OutOfMemoryError):
        folder.mark_out_of_memory()
        raise
    return model, None


if __name__ == "__main__":
    main()
