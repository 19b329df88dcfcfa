"""Reliability of predicted probabilities: bins of confidence, and the histogram of the PIT.

Confidence is compared with accuracy in adaptive bins of nearly equal numbers of rows. Most
predictions of a good classifier are confident, so that most bins of equal width would have few rows
(Nguyen and O'Connor 2015). For numbers the probability integral transform (PIT) F(y) is uniform if
the predictive distributions F are right (Dawid 1984; Gneiting, Balabdaoui and Raftery 2007).
"""

from jaxtyping import Float
from torch import Tensor

from models.config import Json

MAX_BINS = 15  # of confidence
PIT_BINS = 20  # so that the share inside central intervals of 10, 20, … 90 % is a sum of bins


def reliability_bins(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"]
) -> list[Json]:
    """Number of rows, mean confidence and accuracy of each bin, the least confident rows first."""
    order = confidence.argsort(stable=True)
    bins = order.tensor_split(min(MAX_BINS, len(order)))
    return [
        {
            "rows": len(rows),
            "confidence": float(confidence[rows].mean()),
            "accuracy": float(correct[rows].mean()),
        }
        for rows in bins
    ]


def confidence_counts(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"], bins: int
) -> list[list[int]]:
    """Number of rows, and of correct ones, by confidence in bins of equal width.

    Other rows fall into the same bins, so that the two can be compared bin by bin.
    """
    number = (confidence * bins).long().clamp(0, bins - 1).cpu()
    rows = number.bincount(minlength=bins)
    hits = number.bincount(correct.double().cpu(), minlength=bins)
    return [[int(n), round(float(k))] for n, k in zip(rows, hits, strict=True)]


def pit_histogram(pit: Float[Tensor, "rows"]) -> list[int]:
    """How many rows have F(y) in each of `PIT_BINS` equal bins of [0, 1].

    NaN, which the paths of a diverging forecast have, is left out.
    """
    known = pit[~pit.isnan()]
    bins = (known * PIT_BINS).long().clamp(0, PIT_BINS - 1)
    counts: list[int] = bins.bincount(minlength=PIT_BINS).tolist()
    return counts
