"""Copies of frozen records that hold tensors."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

Record = TypeVar("Record")


class TensorRecord:
    """A frozen dataclass of tensors, dicts of tensors and other such records."""

    def to(self: Record, device: str | torch.device) -> Record:
        """This record, if all of it is on the device, or else a copy that is."""
        wanted = torch.device(device)
        if all(tensor.device == wanted for tensor in _tensors(self)):
            return self
        return _map_tensors(self, lambda tensor: tensor.to(device))

    def double(self: Record) -> Record:
        """A copy whose floating-point numbers are float64."""
        return _map_tensors(self, lambda t: t.double() if t.is_floating_point() else t)

    def detach(self: Record) -> Record:
        """A copy without gradients that shares no memory with the original."""
        return _map_tensors(self, lambda tensor: tensor.detach().clone())


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif is_dataclass(value):
        for own in fields(value):
            yield from _tensors(getattr(value, own.name))


def _map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_tensors(item, change) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _map_tensors(getattr(value, f.name), change) for f in fields(value)}
        return replace(value, **changed)
    return value
