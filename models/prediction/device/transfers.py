"""Copies between the processor's memory and a device's, without waiting for each."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


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
