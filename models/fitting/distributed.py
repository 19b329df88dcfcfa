"""Several processes that fit one model together: each computes its rows of every mini-batch.

All ranks run the same code on the same rows from the same seed. The losses of the parts of a
mini-batch add up to its loss, and their gradients to its gradient. Every decision is made from such
sums or by rank 0. So all ranks take the same steps, which are those of one process within rounding.

Gradients are summed by one all_reduce of a flat vector, not by DistributedDataParallel: the loss is
a function of two flat leaves, loc and rho, whose gradients are complete only at the end of the
backward pass, so that DDP would have nothing to overlap with it.

The process group needs a backend for tensors on the CPU: "gloo", or "cpu:gloo,cuda:nccl".
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor


@contextmanager
def process_group(
    backend: str, timeout: timedelta, device: torch.device | None = None
) -> Iterator[None]:
    """Join the processes that torchrun started, and leave them at the end of the block.

    The first step of an optimizer imports torch._dynamo, which keeps a reference to a group that
    exists by then. The group's threads would outlive the block, and abort the process if they free
    a tensor while the interpreter ends. So the import comes first.

    Args:
        timeout: the longest that one process waits for another.
        device: this process's card; None without CUDA.
    """
    import_module("torch._dynamo")
    dist.init_process_group(backend, timeout=timeout, device_id=device)
    try:
        yield
    finally:
        dist.destroy_process_group()


@dataclass(frozen=True)
class Part:
    """The rows `start` to `stop` of `total`, which one of `ranks` processes computes."""

    start: int
    stop: int
    total: int
    ranks: int = 1

    @classmethod
    def whole(cls, total: int) -> "Part":
        return cls(0, total, total)

    @property
    def rows(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class Ranks:
    """This process among those that fit a model. With a single process all methods do nothing."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> "Ranks":
        """This process in the default process group; `ALONE` if there is no group."""
        if not dist.is_available() or not dist.is_initialized():
            return ALONE
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def leads(self) -> bool:
        """Whether this is the one process that reports, saves and decides."""
        return self.rank == 0

    def part(self, total: int) -> Part:
        """This rank's part of `total` rows; sizes differ by one at most, and may be 0."""
        start, stop = (total * rank // self.size for rank in (self.rank, self.rank + 1))
        return Part(start, stop, total, self.size)

    def sum(self, value: Tensor) -> Tensor:
        """The value summed over all ranks: the same bits on each."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def sum_gradients(self, parameters: Sequence[Tensor], terms: Sequence[Tensor]) -> list[Tensor]:
        """Sum the parameters' gradients over all ranks, in place; return the sums of the terms.

        There is a single all_reduce, so that its latency is paid once per step.
        """
        if self.size == 1:
            return list(terms)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        values = [value.detach() for value in (*gradients, *terms)]
        flat = self.sum(torch.cat([value.flatten() for value in values]))
        pieces = flat.split([value.numel() for value in values])
        summed = [piece.view_as(value) for piece, value in zip(pieces, values, strict=True)]
        for parameter, gradient in zip(parameters, summed, strict=False):
            parameter.grad = gradient
        return summed[len(parameters) :]

    def decide(self, decision: Callable[[], bool]) -> bool:
        """Rank 0's decision, on every rank. Only rank 0 calls the function."""
        if self.size == 1:
            return decision()
        decided = torch.tensor([self.leads and decision()], dtype=torch.uint8)
        dist.broadcast(decided, 0)
        return bool(decided)

    def share(self, read: Callable[[], bytes]) -> bytes:
        """The bytes that rank 0 reads, on every rank."""
        if self.size == 1:
            return read()
        data = torch.from_numpy(np.frombuffer(bytearray(read() if self.leads else b""), np.uint8))
        size = torch.tensor([len(data)])
        dist.broadcast(size, 0)
        data = data if self.leads else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0)
        return data.numpy().tobytes()

    def align(self, tensors: Sequence[Tensor]) -> None:
        """Overwrites the tensors with those of rank 0."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, 0)


ALONE = Ranks()


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
