"""Compares methods by their scores on the same rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Paired:
    """The mean difference of two scores per row, and its standard error.

    The error is NaN for a single row.
    """

    difference: float
    standard_error: float

    @property
    def is_clear(self) -> bool:
        """Whether the difference is above its standard error."""
        return self.difference > self.standard_error


def paired(scores: Float[Tensor, "rows"], others: Float[Tensor, "rows"]) -> Paired:
    """The mean of `scores` − `others`, with s / √n of the differences as its standard error."""
    difference = scores.double() - others.double()
    rows = len(difference)
    error = float(difference.std()) / math.sqrt(rows) if rows > 1 else math.nan
    return Paired(float(difference.mean()), error)


def recommend_variant(
    log_likelihoods: Mapping[float, Float[Tensor, "rows"]],
) -> tuple[float, Paired | None]:
    """The pruned fraction that is better than the full model by more than a standard error.

    Returns:
        The best such fraction with its difference to the full model; 0.0 and None if no pruned
        variant is better by more than a standard error.

    Args:
        log_likelihoods: of each held-out row, by pruned fraction; 0.0 is the full model.
    """
    full = log_likelihoods[0.0]
    pairs = {prune: paired(rows, full) for prune, rows in log_likelihoods.items() if prune}
    clear = {prune: pair for prune, pair in pairs.items() if pair.is_clear}
    if not clear:
        return 0.0, None
    best = max(clear, key=lambda prune: clear[prune].difference)
    return best, clear[best]
