"""How many threads a computation is worth."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Operations below which one thread is as fast as two: those that sleep take some 50 µs to wake, at
# every product. Measured with two threads that sleep while idle (docs/benchmarks.md).
WORTH_THREADS = 4e8


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """One thread for a small computation, else as many as the caller has set."""
    number = torch.get_num_threads()
    if number == 1 or operations >= WORTH_THREADS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(number)
