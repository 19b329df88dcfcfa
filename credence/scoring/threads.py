"""The number of threads of torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def limited_to(threads: int | None) -> Iterator[None]:
    """Compute with so many threads of torch; None for those of the process."""
    before = torch.get_num_threads()
    if threads is None or threads == before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
