"""Threads for a computation: how many torch uses, and rows divided among several.

Compiled kernels run without Python's lock, so that threads may compute parts of one answer.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import TypeVar

import torch

from models.config import ConvolutionalConfig, ModelConfig

# Below this number of operations one thread is as fast as two: a sleeping thread takes some 50 µs
# to wake, at every product. Measured with threads that sleep while idle (docs/benchmarks.md).
WORTH_THREADS = 4e8


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Use one thread for a small computation, else as many as the caller has set."""
    number = torch.get_num_threads()
    if number == 1 or operations >= WORTH_THREADS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(number)


def training_threads(config: ModelConfig, most: int, processes: int = 1) -> int:
    """Threads per process: one if torch would not split an elementwise operation.

    It splits only more than 32,768 elements. For fewer a second thread would only wait, on a busy
    machine for long. Images and language models always use all threads.
    """
    large = isinstance(config.network, ConvolutionalConfig) or config.task == "language_model"
    if large:
        return max(1, most // processes)
    rows = (config.training.batch_size or 1) // processes
    widest = max(config.network.hidden or (1,)) * rows
    return 1 if widest <= 32_768 else max(1, most // processes)


# Rows of one answer on several threads

T = TypeVar("T")

_WORTH = 5e7  # operations of a thread, half a millisecond: a sleeping one takes some 50 µs to wake
_PART = 16  # rows: parts are multiples of a vector's lanes, whatever the number of threads


def divided(rows: int, operations: float, threads: int) -> list[slice]:
    """Even parts of the rows, one for each thread that is worth it.

    Args:
        operations: of all rows.
    """
    blocks = -(-rows // _PART)
    parts = max(1, min(threads, blocks, int(operations / _WORTH)))
    ends = [min(rows, _PART * (blocks * i // parts)) for i in range(parts + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def in_threads(compute: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """The results of all parts, in order; this thread computes the first."""
    if len(parts) == 1:
        return [compute(parts[0])]
    waiting = [_pool(os.getpid()).submit(compute, part) for part in parts[1:]]
    return [compute(parts[0]), *(future.result() for future in waiting)]


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Of a process: its threads do not survive a fork."""
    return ThreadPoolExecutor(os.cpu_count(), f"kernels of {process}")
