"""What all layers have: a name, from which those of their tensors follow, and shapes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Layer(ABC):
    """A description of named weight tensors, which holds none of them."""

    name: str

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def bias(self) -> str:
        return f"{self.name}.bias"

    @property
    @abstractmethod
    def fan_in(self) -> int:
        """Number of inputs of one output."""

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""
