"""The stored posteriors of a model: the full one and one per pruning fraction."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import torch

from models.config import Json
from models.evaluation.calibration import Calibration
from models.evaluation.out_of_distribution import Detector
from models.exceptions import UnknownVariant
from models.inference.method import State


@dataclass(frozen=True)
class Variant:
    """One posterior of a version: the full one (prune 0) or a pruned one.

    Its `detector` is None until it is scored, and in models of texts.
    """

    prune: float
    state: State
    metrics: Json = field(default_factory=dict)
    num_bytes: int = 0
    error_factors: Mapping[int, float] = field(default_factory=dict)
    calibration: Calibration | None = None  # None: as the posterior has it
    bfloat16: bool = False  # whether its rounding is small beside the sampling error
    detector: Detector | None = None

    def describe(self) -> Json:
        return {
            "prune": self.prune,
            "num_weights": self.state.num_weights,
            "bytes": self.num_bytes,
            "calibration": self.calibration and self.calibration.describe(),
            "metrics": self.metrics,
            **({"out_of_distribution": asdict(self.detector)} if self.detector else {}),
        }


class PosteriorVariants:
    """Shared by models of rows and of texts, which hold `variants_by_prune`."""

    variants_by_prune: Mapping[float, Variant]

    @property
    def variants(self) -> tuple[float, ...]:
        """Stored pruning fractions, 0.0 (the full posterior) first."""
        return tuple(sorted(self.variants_by_prune))

    @property
    def num_bytes(self) -> int:
        """Memory that the posteriors hold."""
        states = [variant.state for variant in self.variants_by_prune.values()]
        return sum(tensor.nbytes for state in states for tensor in state.tensors())

    @property
    def device(self) -> torch.device:
        """Where the posteriors are."""
        return next(iter(self.variants_by_prune.values())).state.tensors()[0].device

    def variant(self, prune: float) -> Variant:
        """
        Raises:
            UnknownVariant: naming the fractions that exist.
        """
        if prune not in self.variants_by_prune:
            known = ", ".join(f"{fraction:g}" for fraction in self.variants)
            raise UnknownVariant(f"no variant with prune {prune:g}; stored are {known}", "/prune")
        return self.variants_by_prune[prune]
