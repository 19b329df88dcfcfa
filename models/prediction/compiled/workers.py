"""Rows of one answer on several threads: kernels run without Python's lock."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

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
    return [compute(parts[0]), *(one.result() for one in waiting)]


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Of a process: its threads do not survive a fork."""
    return ThreadPoolExecutor(os.cpu_count(), f"kernels of {process}")
