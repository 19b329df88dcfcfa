"""What all trained models say of their posteriors: a full one, and one per pruned fraction."""

from collections.abc import Mapping

import torch

from models.exceptions import UnknownVariant
from models.posteriors.variant import Variant


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
