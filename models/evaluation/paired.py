"""Compares methods by their scores on the same rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from models.evaluation.weighting import Weights, mean, total


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


def paired(
    scores: Float[Tensor, "rows"], others: Float[Tensor, "rows"], weights: Weights | None = None
) -> Paired:
    """The mean of `scores` − `others`, with s / √n of the differences as its standard error.

    With weights n is their sum, as if each row was repeated as often as its weight says.
    """
    difference = scores.double() - others.double()
    return Paired(mean(difference, weights), standard_error(difference, weights))


def standard_error(values: Float[Tensor, "rows"], weights: Weights | None = None) -> float:
    """s / √n, with s² = Σ w (v − v̄)² / (n − 1) and n = Σ w; NaN unless n is above 1."""
    n = total(values, weights)
    if n <= 1:
        return math.nan
    if weights is None:
        return float(values.std()) / math.sqrt(n)
    squares = (values - mean(values, weights)).square() * weights
    return math.sqrt(float(squares.sum()) / (n - 1) / n)


def recommend_variant(
    log_likelihoods: Mapping[float, Float[Tensor, "rows"]], weights: Weights | None = None
) -> tuple[float, Paired | None]:
    """The pruned fraction that is better than the full model by more than a standard error.

    Returns:
        The best such fraction with its difference to the full model; 0.0 and None if no pruned
        variant is better by more than a standard error.

    Args:
        log_likelihoods: of each held-out row, by pruned fraction; 0.0 is the full model.
        weights: of these rows.
    """
    full = log_likelihoods[0.0]
    pairs = {prune: paired(rows, full, weights) for prune, rows in log_likelihoods.items() if prune}
    clear = {prune: pair for prune, pair in pairs.items() if pair.is_clear}
    if not clear:
        return 0.0, None
    best = max(clear, key=lambda prune: clear[prune].difference)
    return best, clear[best]
