"""The torch device: the job's, else that of `CREDENCE_DEVICE`, else CUDA if there is one."""

import torch

from core.exceptions import Invalid, InvalidSetting
from core.settings import Settings


def service_device(settings: Settings) -> str:
    """The torch device of this process.

    Raises:
        InvalidSetting: this machine does not have the device of `CREDENCE_DEVICE`.
    """
    if settings.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if settings.device not in _devices():
        raise InvalidSetting(
            f"CREDENCE_DEVICE={settings.device}: this machine has {', '.join(_devices())}"
        )
    return settings.device


def job_device(wanted: str, settings: Settings) -> str:
    """The device of a job; for `auto` that of the process.

    Raises:
        Invalid: this worker does not have it.
    """
    if wanted == "auto":
        return service_device(settings)
    if wanted not in _devices():
        message = f"this worker has no device {wanted!r}; it has {', '.join(_devices())}"
        raise Invalid([("/training/device", message)])
    return wanted


def _devices() -> list[str]:
    count = torch.cuda.device_count()
    return ["cpu", *(["cuda"] if count else []), *(f"cuda:{i}" for i in range(count))]
