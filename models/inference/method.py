"""The interfaces of methods of inference and of the states that they fit."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import KLConfig
from models.features.rows import Rows
from models.inference.objectives import Loss
from models.inference.products import Products
from models.networks import Masks
from models.posteriors.layout import Layout, Weights
from models.training.distributed import Part


@runtime_checkable
class State(Protocol):
    """The state that a method fits. Frozen, but an optimiser updates its parameters in place."""

    @property
    def num_weights(self) -> int:
        """Number of weights of one network that are not pruned."""
        ...

    @property
    def num_draws(self) -> int | None:
        """Number of stored weight vectors, each used once; None if any number can be drawn."""
        ...

    def parameters(self) -> list[Tensor]:
        """The leaf tensors that an optimiser updates."""
        ...

    def tensors(self) -> list[Tensor]:
        """All tensors of the state, the parameters first."""
        ...

    def detach(self) -> "State":
        """A copy that shares no memory with the parameters."""
        ...

    def to(self, device: str | torch.device) -> "State": ...

    def pack(self) -> dict[str, Tensor]:
        """The tensors to store, by name, on the CPU."""
        ...

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "State":
        """The inverse of `pack`; `num_weights` counts pruned weights, too."""
        ...


@dataclass(frozen=True)
class Draw:
    """A network function drawn from a state, differentiable in the state's parameters.

    `penalty` is the second term of the loss, in nats for the whole network. It counts once per
    epoch, that is 1/M in each of M windows.
    """

    weights: Weights
    penalty: Float[Tensor, ""]
    masks: Masks | None = None


@runtime_checkable
class Method(Protocol):
    """A method bound to a network, a likelihood and the number of rows.

    `init` makes a state; a trainer minimises `loss` over its parameters.
    """

    @property
    def layout(self) -> Layout: ...

    @property
    def kl(self) -> KLConfig:
        """Weight of the loss's second term; only a KL can have another weight than 1."""
        ...

    @property
    def num_parameters(self) -> int: ...

    @property
    def products(self) -> Products:
        """The format of the network's products in `loss`."""
        ...

    @property
    def members(self) -> int:
        """Number of networks fitted in parallel; their losses are added, reports are their mean."""
        ...

    def init(self, generator: torch.Generator) -> Any: ...

    def loss(
        self,
        state: Any,
        batch: Rows,
        kl_weight: float,
        generator: torch.Generator,
        part: Part | None = None,
    ) -> Loss: ...

    def collect(self, state: Any) -> None:
        """Record the state at the end of an epoch, for methods that need more than the last one."""
        ...


@runtime_checkable
class WindowMethod(Method, Protocol):
    """A method that can also be fitted to windows of text, whose trainer computes the loss."""

    def draw(self, state: Any, streams: int, generator: torch.Generator) -> Draw:
        """Draw one function for a window of `streams` sequences, with its penalty."""
        ...


FIXED = KLConfig(weight=1.0, warmup_epochs=0)  # for methods whose second term is −log P(w)


def pack_point(point: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return point parameters under names that differ from those of a state's other tensors."""
    return {f"point.{name}": value.detach().cpu() for name, value in point.items()}


def unpack_point(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `pack_point`."""
    return {k.removeprefix("point."): v for k, v in tensors.items() if k.startswith("point.")}
