"""One of several processes that train a model: `torchrun … -m worker.rank FOLDER`.

All ranks read the same folder (`worker.shared_folder`); only rank 0 writes to it.
"""

import argparse
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from core.process.freed_memory import keep_freed_memory
from core.process.parent import stop_with_stdin
from models.artifact.files import write_model
from models.exceptions import ModelError, Stopped
from models.training.train import train
from worker.shared_folder import SharedFolder

# If a rank ends, its connections close and the others fail at once. The timeout is for a rank whose
# machine disappears. It must exceed the longest wait, which is for a checkpoint.
_TIMEOUT = timedelta(minutes=5)


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
    device = _join(training.device)
    model, error = None, None
    try:
        model = train(
            columns,
            training.types,
            training.config,
            device=device,
            on_progress=folder.write_progress,
            should_stop=folder.stop_requested,
            checkpoint_dir=folder.checkpoints,
            checkpoint_seconds=training.checkpoint_seconds,
        )
    except (ModelError, Stopped) as reason:
        error = reason
    except (MemoryError, torch.OutOfMemoryError):
        folder.mark_out_of_memory()
        raise
    if dist.get_rank() == 0:
        if model is not None:
            write_model(model, folder.model)
        folder.write_outcome(error)
    dist.destroy_process_group()


def _join(device: str) -> str:
    """Join the process group and return this rank's device. On CUDA each rank has a card."""
    if device == "cpu":
        dist.init_process_group("gloo", timeout=_TIMEOUT)
        return device
    card = torch.device("cuda", dist.get_node_local_rank())
    torch.cuda.set_device(card)
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=_TIMEOUT, device_id=card)
    return str(card)


if __name__ == "__main__":
    main()
