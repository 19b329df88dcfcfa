"""Likelihoods of classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from models.likelihoods.likelihood import Outputs, PerRow


@dataclass(frozen=True)
class Categorical:
    """One logit per class, for at least two classes: softmax over a single logit is always 1."""

    parameters: ClassVar[Mapping[str, float]] = {}
    noise_outputs: ClassVar[tuple[int, ...]] = ()

    num_classes: int

    @property
    def num_outputs(self) -> int:
        return self.num_classes

    def logits(
        self, outputs: Float[Tensor, "*samples rows classes"]
    ) -> Float[Tensor, "*samples rows classes"]:
        """The logits of all classes."""
        return outputs

    def log_prob(
        self, outputs: Outputs, targets: Int[Tensor, "rows"], point: dict[str, Tensor]
    ) -> PerRow:
        flat = outputs.reshape(-1, self.num_classes)
        repeated = targets.expand(outputs.shape[:-1]).reshape(-1)
        return -cross_entropy(flat, repeated, reduction="none").reshape(outputs.shape[:-1])


@dataclass(frozen=True)
class Bernoulli:
    """Two classes from one logit, which is the second class's."""

    num_outputs: ClassVar[int] = 1
    num_classes: ClassVar[int] = 2
    parameters: ClassVar[Mapping[str, float]] = {}
    noise_outputs: ClassVar[tuple[int, ...]] = ()

    def logits(self, outputs: Float[Tensor, "*samples rows 1"]) -> Float[Tensor, "*samples rows 2"]:
        """The logits (−o/2, o/2) of both classes: their softmax is the sigmoid of the output o."""
        return torch.cat([-0.5 * outputs, 0.5 * outputs], dim=-1)

    def log_prob(
        self, outputs: Outputs, targets: Int[Tensor, "rows"], point: dict[str, Tensor]
    ) -> PerRow:
        logits = outputs[..., 0]
        labels = targets.to(logits.dtype).expand_as(logits)
        return -binary_cross_entropy_with_logits(logits, labels, reduction="none")


ClassLikelihood = Categorical | Bernoulli
