"""One of several processes that train a model: `torchrun … -m worker.distributed FOLDER`.

All of them read the same order; rank 0 alone writes to the folder (`worker.exchange`).
"""

import argparse
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from core.process.parent import stop_with_stdin
from models.artifact.files import write_model
from models.exceptions import ModelError, Stopped
from worker.exchange import Exchange

# A rank that ends is noticed at once, since its connections close. This is for one that vanishes
# with its machine; no wait is longer than a checkpoint takes to write.
_TIMEOUT = timedelta(minutes=5)


def main() -> None:
    parser = argparse.ArgumentParser(prog="worker.distributed", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when it closes")
    arguments = parser.parse_args()
    if arguments.stop_with_stdin:
        stop_with_stdin(grace_seconds=1.0)
    run_rank(Exchange(arguments.folder))


def run_rank(exchange: Exchange) -> None:
    """Trains with the others. An ending that they all come to is told, and none of them fails."""
    order = exchange.order()
    order = replace(order, device=_join(order.device))
    model, error = None, None
    try:
        model = order.carry_out(exchange.columns(order), exchange.report, exchange.stop_is_asked)
    except (ModelError, Stopped) as reason:
        error = reason
    except (MemoryError, torch.OutOfMemoryError):
        exchange.tell_out_of_memory()
        raise
    if dist.get_rank() == 0:
        if model is not None:
            write_model(model, exchange.model)
        exchange.tell_ending(error)
    dist.destroy_process_group()


def _join(device: str) -> str:
    """Joins the process group; returns this rank's device: on CUDA each has one of its own."""
    if device == "cpu":
        dist.init_process_group("gloo", timeout=_TIMEOUT)
        return device
    mine = torch.device("cuda", dist.get_node_local_rank())
    torch.cuda.set_device(mine)
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=_TIMEOUT, device_id=mine)
    return str(mine)


if __name__ == "__main__":
    main()
