"""What a prediction does otherwise on a GPU: its memory and its copies."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

DEFAULT_MEMORY_BYTES = 256 * 2**20
# Buffers in the cache save one access to memory per activation, but matrix products need some
# hundred rows to reach full speed (docs/benchmarks.md has the measurement).
CACHE_BYTES = 12 * 2**20

# The share of what is free on a card when a model is first used: other models, the requests' noise
# and the products' own workspaces need the rest.
_ROWS_SHARE = 8
_OF_THE_PROCESSOR = "can't allocate memory"  # torch's words; the type is that of any error


@dataclass(frozen=True)
class Budget:
    """Bytes of a device.

    Args:
        memory: of the rows that are computed together, with the outputs of all their samples.
        cache: of the buffers between two layers. In a cache they save an access to memory for each
            activation; what fits into it are the rows × samples of one product.
    """

    memory: int = DEFAULT_MEMORY_BYTES
    cache: int = CACHE_BYTES

    @classmethod
    def of(cls, device: torch.device) -> "Budget":
        """The budget of a device as it is now; that of a processor is always the same.

        A card's is never below a processor's, so that small cards compute in chunks as small, but
        not smaller: then they run out of memory, which the error says.
        """
        if device.type != "cuda":
            return cls()
        free, _ = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        second_level = torch.cuda.get_device_properties(device).L2_cache_size
        return cls(max(DEFAULT_MEMORY_BYTES, free // _ROWS_SHARE), max(CACHE_BYTES, second_level))


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device's memory, or the process's, was not enough."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _OF_THE_PROCESSOR in str(error)


def give_back() -> None:
    """Give the memory that torch keeps for later back to the GPUs, for a try with less."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def to_device(x: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device. To a GPU it is copied from pinned memory, and nothing waits.

    torch's allocator keeps the pinned memory until the copy is done.
    """
    if device.type != "cuda" or x.device.type != "cpu":
        return x.to(device)
    return x.pin_memory().to(device, non_blocking=True)


def to_host(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """All tensors as arrays. From a GPU they are copied at once, and waited for once."""
    copies = {name: tensor.to("cpu", non_blocking=True) for name, tensor in tensors.items()}
    for device in {tensor.device for tensor in tensors.values() if tensor.device.type == "cuda"}:
        torch.cuda.current_stream(device).synchronize()
    return {name: copy.numpy() for name, copy in copies.items()}
