"""What all methods have in common: the verbs by which they are fitted, and what they leave."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import KLConfig
from models.features.rows import Rows
from models.inference.objectives import Loss
from models.networks import Masks
from models.posteriors.layout import Layout, Weights
from models.training.distributed import Part


@runtime_checkable
class State(Protocol):
    """What a method has fitted. Frozen, but for the leaves that an optimiser moves in place."""

    @property
    def num_weights(self) -> int:
        """Weights of one network that are not pruned."""
        ...

    @property
    def num_draws(self) -> int | None:
        """Weight vectors that are kept, each used once; None where any number can be drawn."""
        ...

    def parameters(self) -> list[Tensor]:
        """The leaves an optimiser moves."""
        ...

    def tensors(self) -> list[Tensor]:
        """All that makes the state: the parameters first."""
        ...

    def detach(self) -> "State":
        """A copy that shares nothing with the leaves an optimiser moves."""
        ...

    def to(self, device: str | torch.device) -> "State": ...

    def pack(self) -> dict[str, Tensor]:
        """The state by name, on the CPU, as it is stored."""
        ...

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "State":
        """The inverse of `pack`; `num_weights` is that of the whole network."""
        ...


@dataclass(frozen=True)
class Draw:
    """One function that a state means, with gradients to its parameters.

    `penalty` is the loss's second term, in nats for the whole network: it counts once per epoch,
    that is 1/M in each of M windows. `local` is what a single window adds to its own terms.
    """

    weights: Weights
    penalty: Float[Tensor, ""]
    masks: Masks | None = None
    local: Float[Tensor, ""] | None = None


@runtime_checkable
class Method(Protocol):
    """A method bound to a network, a likelihood and the number of rows it is fitted to.

    `loss` is minimised over the parameters of a state that the same method's `init` made.
    """

    @property
    def layout(self) -> Layout: ...

    @property
    def kl(self) -> KLConfig:
        """How the loss's second term is weighed; for all but the ELBO it simply counts."""
        ...

    @property
    def num_parameters(self) -> int: ...

    @property
    def members(self) -> int:
        """Networks that are fitted side by side, their losses added; reports are of their mean."""
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
        """Takes note of the state at an epoch's end, where a method needs more than the last."""
        ...


@runtime_checkable
class WindowMethod(Method, Protocol):
    """A method that can be fitted to windows of text, too, whose loss is put together there."""

    def draw(self, state: Any, streams: int, generator: torch.Generator) -> Draw:
        """One function for a whole window of `streams` sequences, with its penalty."""
        ...


FIXED = KLConfig(weight=1.0, warmup_epochs=0)  # of methods whose second term is a log prior


def pack_point(point: dict[str, Tensor]) -> dict[str, Tensor]:
    """Point parameters under names of their own among a state's tensors."""
    return {f"point.{name}": value.detach().cpu() for name, value in point.items()}


def unpack_point(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `pack_point`."""
    return {k.removeprefix("point."): v for k, v in tensors.items() if k.startswith("point.")}
