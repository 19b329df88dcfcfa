"""How many threads a computation is worth."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from models.config import ConvolutionalConfig, ModelConfig

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


def training_threads(config: ModelConfig, most: int, processes: int = 1) -> int:
    """Per process: one where torch would not split an elementwise operation (32,768 elements).

    A second one would only wait, and on a busy machine it waits long.
    Images and vocabularies are always worth it.
    """
    large = isinstance(config.network, ConvolutionalConfig) or config.task == "language_model"
    if large:
        return max(1, most // processes)
    rows = (config.training.batch_size or 1) // processes
    widest = max(config.network.hidden or (1,)) * rows
    return 1 if widest <= 32_768 else max(1, most // processes)
