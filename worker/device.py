"""Which device trains: the job's wish, else the operator's, else CUDA when there is one."""

import torch

from models.exceptions import InvalidData


def choose_device(wanted: str, default: str) -> str:
    """A torch device name.

    Raises:
        InvalidData: if the job asks for a device that this worker does not have.
    """
    name = default if wanted == "auto" else wanted
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if not _exists(name):
        raise InvalidData(
            f"this worker has no device {name!r}; it has {', '.join(_devices())}",
            "/training/device",
        )
    return name


def _devices() -> list[str]:
    return ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]


def _exists(name: str) -> bool:
    return name in _devices() or (name == "cuda" and torch.cuda.is_available())
