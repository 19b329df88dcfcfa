"""The number of threads for a computation."""

from collections.abc import Iterator
from contextlib import contextmanager

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
