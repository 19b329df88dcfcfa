"""The interface of likelihoods: the distribution of the encoded target given the outputs."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

Outputs = Float[Tensor, "*samples rows outputs"]
PerRow = Float[Tensor, "*samples rows"]


@runtime_checkable
class Likelihood(Protocol):
    """P(y | outputs)."""

    @property
    def num_outputs(self) -> int: ...

    @property
    def parameters(self) -> Mapping[str, float]:
        """Initial values of the likelihood's own point parameters, by name."""
        ...

    @property
    def noise_outputs(self) -> tuple[int, ...]:
        """Indices of outputs that describe noise.

        They start as constants and have their own prior scales.
        """
        ...

    def log_prob(self, outputs: Outputs, targets: Tensor, point: dict[str, Tensor]) -> PerRow:
        """log P(y | outputs) in nats for each sample and row."""
        ...
