"""How a process that torchrun started joins the others of its training."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from models.training.distributed import process_group

# If a rank ends, its connections close and the others fail at once. The timeout is for a rank whose
# machine disappears. It must exceed the longest wait, which is for a checkpoint.
TIMEOUT = timedelta(minutes=5)


@contextmanager
def joined(device: str) -> Iterator[str]:
    """This rank's device, while it is in the process group. On CUDA each rank has a card."""
    if device == "cpu":
        with process_group("gloo", TIMEOUT):
            yield device
        return
    card = torch.device("cuda", dist.get_node_local_rank())
    torch.cuda.set_device(card)
    with process_group("cpu:gloo,cuda:nccl", TIMEOUT, card):
        yield str(card)


def is_lost(error: Exception) -> bool:
    """Whether an exception says that another rank, or the connection to it, was lost."""
    if isinstance(error, dist.DistError):
        return True
    return type(error) is RuntimeError and ("gloo" in str(error).lower() or "NCCL" in str(error))
