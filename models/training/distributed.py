"""Several processes that fit one model together: each computes its rows of every mini-batch.

All ranks run the same code on the same rows from the same seed. The parts of a mini-batch add up to
its loss, their gradients to its gradient, and every decision is made from such sums or by rank 0:
so the ranks take the same steps as one process does, within rounding, and none goes its own way.

Gradients travel in one all_reduce of a flat vector, not through DistributedDataParallel. The loss
is a function of two flat leaves, loc and rho, and no module's forward; the gradient of either is
whole only at the end of the backward pass, so that DDP's buckets would find nothing to overlap.

Who calls `torch.distributed.init_process_group` does so with a backend for tensors on the CPU, too:
"gloo", or "cpu:gloo,cuda:nccl".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Part:
    """The rows `start` to `stop` of `total` which one of `ranks` processes computes."""

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
    """This process among those that fit a model; a single one does no more than without ranks."""

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> "Ranks":
        """The default process group; one process where none was initialised."""
        if not dist.is_available() or not dist.is_initialized():
            return ALONE
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def leads(self) -> bool:
        """Whether this is the one process that reports, saves and decides."""
        return self.rank == 0

    def part(self, total: int) -> Part:
        """This rank's rows; sizes differ by one at most, and may be 0."""
        start, stop = (total * rank // self.size for rank in (self.rank, self.rank + 1))
        return Part(start, stop, total, self.size)

    def sum(self, value: Tensor) -> Tensor:
        """The value summed over all ranks, the same bits on each."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def sum_gradients(self, parameters: Sequence[Tensor], terms: Sequence[Tensor]) -> list[Tensor]:
        """Replaces the parameters' gradients by their sums over all ranks; the terms' sums.

        One all_reduce for all: its latency is paid once per step.
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

    def decide(self, ask: Callable[[], bool]) -> bool:
        """What rank 0 answers; the others are not asked."""
        if self.size == 1:
            return ask()
        answer = torch.tensor([self.leads and ask()], dtype=torch.uint8)
        dist.broadcast(answer, 0)
        return bool(answer)

    def share(self, read: Callable[[], bytes]) -> bytes:
        """What rank 0 reads, on every rank."""
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
