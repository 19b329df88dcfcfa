"""Frozen records of tensors: copies, and names in a file. Tensors that never change."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

Record = TypeVar("Record")


@dataclass(frozen=True)
class Constant:
    """Numbers that many steps need as a tensor, which is made once for each dtype and device."""

    values: tuple[float, ...]
    _made: dict[tuple[torch.dtype, torch.device], Tensor] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @torch.inference_mode(mode=False)  # a training could not use an inference tensor
    def like(self, tensor: Tensor) -> Tensor:
        """The numbers in the dtype and on the device of `tensor`. Must not be written to."""
        key = tensor.dtype, tensor.device
        if key not in self._made:
            self._made[key] = torch.tensor(self.values, dtype=key[0], device=key[1])
        return self._made[key]


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


def named_tensors(record: TensorRecord, prefix: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a record and of the records in it, as they are stored: `prefix.field`."""
    for entry in fields(record):  # type: ignore[arg-type]
        value, name = getattr(record, entry.name), f"{prefix}.{entry.name}"
        if isinstance(value, Tensor):
            yield name, value.cpu().contiguous()
        else:
            yield from named_tensors(value, name)


def restored(kind: type[Record], prefix: str, tensors: Mapping[str, Tensor]) -> Record:
    """The inverse of `named_tensors`.

    Raises:
        ValueError: if a tensor is missing.
    """
    values: dict[str, Any] = {}
    for entry in fields(kind):  # type: ignore[arg-type]
        name = f"{prefix}.{entry.name}"
        if isinstance(entry.type, type) and issubclass(entry.type, TensorRecord):
            values[entry.name] = restored(entry.type, name, tensors)
        elif name not in tensors:
            raise ValueError(f"{name} is missing")
        else:
            values[entry.name] = tensors[name]
    return kind(**values)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif is_dataclass(value):
        for entry in fields(value):
            yield from _tensors(getattr(value, entry.name))


def _map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_tensors(item, change) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _map_tensors(getattr(value, f.name), change) for f in fields(value)}
        return replace(value, **changed)
    return value
