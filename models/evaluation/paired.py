"""Compares methods by their scores on the same rows."""

import math
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
        """Whether the difference is above its standard error: a rule to keep ties, no test."""
        return self.difference > self.standard_error

    @property
    def is_certain(self) -> bool:
        """Whether the difference is above two standard errors: by chance in 2.5 % of pairs."""
        return self.difference > 2 * self.standard_error


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
