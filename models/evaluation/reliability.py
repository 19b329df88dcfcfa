"""Reliability of predicted probabilities: bins of confidence, and the histogram of the PIT.

Confidence is compared with accuracy in adaptive bins of nearly equal numbers of rows. Most
predictions of a good classifier are confident, so that most bins of equal width would have few rows
(Nguyen and O'Connor 2015). For numbers the probability integral transform (PIT) F(y) is uniform if
the predictive distributions F are right (Dawid 1984; Gneiting, Balabdaoui and Raftery 2007).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.evaluation.weighting import Weights, bin_ends, shares, total

MAX_BINS = 15  # of confidence
PIT_BINS = 20  # so that the share inside central intervals of 10, 20, … 90 % is a sum of bins


def reliability_bins(
    confidence: Float[Tensor, "rows"],
    correct: Float[Tensor, "rows"],
    weights: Weights | None = None,
) -> list[Json]:
    """Number of rows, mean confidence and accuracy of each bin, the least confident rows first.

    With weights the bins are of nearly equal `weight`, and a row may be in several of them.
    """
    order = confidence.argsort(stable=True)
    if weights is not None:
        return _weighted_bins(confidence[order], correct[order], weights[order])
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
    confidence: Float[Tensor, "rows"],
    correct: Float[Tensor, "rows"],
    bins: int = MAX_BINS,
    weights: Weights | None = None,
) -> list[list[int]]:
    """Number of rows, and of correct ones, by confidence in bins of equal width.

    Other rows fall into the same bins, so that the two can be compared bin by bin. A row of weight
    w counts as w rows.
    """
    number = (confidence * bins).long().clamp(0, bins - 1).cpu()
    each = torch.ones(len(number)) if weights is None else weights.cpu()
    rows = number.bincount(each.double(), minlength=bins)
    hits = number.bincount(each.double() * correct.double().cpu(), minlength=bins)
    return [[round(n), round(k)] for n, k in zip(rows.tolist(), hits.tolist(), strict=True)]


def _weighted_bins(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"], weights: Weights
) -> list[Json]:
    weight = total(confidence, weights)
    ends = bin_ends(weight, min(MAX_BINS, max(1, int(weight)))).to(weights.device)
    inside = shares(weights.double(), ends)
    return [
        {
            "rows": int((share > 0).sum()),
            "weight": float(share.sum()),
            "confidence": float(share @ confidence.double() / share.sum()),
            "accuracy": float(share @ correct.double() / share.sum()),
        }
        for share in inside
    ]


def pit_histogram(
    pit: Float[Tensor, "rows"], weights: Weights | None = None
) -> list[int] | list[float]:
    """How many rows, or how much weight, has F(y) in each of `PIT_BINS` equal bins of [0, 1].

    NaN, which the paths of a diverging forecast have, is left out.
    """
    known = ~pit.isnan()
    bins = (pit[known] * PIT_BINS).long().clamp(0, PIT_BINS - 1)
    counted = None if weights is None else weights[known]
    counts: list[int] | list[float] = bins.bincount(counted, minlength=PIT_BINS).tolist()
    return counts
