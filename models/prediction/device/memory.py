"""Running out of memory: which errors say so, and what can be given back."""

import torch

_OF_THE_PROCESSOR = "can't allocate memory"  # torch's words; the type is that of any error


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device's memory, or the process's, was not enough."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _OF_THE_PROCESSOR in str(error)


def give_back() -> None:
    """Give the memory that torch keeps for later back to the GPUs, for a try with less."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
