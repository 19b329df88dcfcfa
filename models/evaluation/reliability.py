"""Whether probabilities mean what they say: bins of confidence, the histogram of the PIT.

Confidence is compared with accuracy in adaptive bins, which hold nearly equal numbers of rows: most
predictions of a good classifier are sure, and bins of equal width would leave the others to noise
(Nguyen and O'Connor 2015). Of numbers the probability integral transform F(y) is uniform if the
predictive distributions F are right (Dawid 1984; Gneiting, Balabdaoui and Raftery 2007).
"""

from jaxtyping import Float
from torch import Tensor

from models.config import Json

MAX_BINS = 15  # of confidence
PIT_BINS = 20  # so that the share inside central intervals of 10, 20, … 90 % is a sum of bins


def reliability_bins(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"]
) -> list[Json]:
    """Per bin its rows, mean confidence and accuracy, the least sure rows first."""
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


def pit_histogram(pit: Float[Tensor, "rows"]) -> list[int]:
    """How many rows have F(y) in each of `PIT_BINS` equal bins of [0, 1].

    Rows without a number are left out: paths of a forecast can run away.
    """
    known = pit[~pit.isnan()]
    bins = (known * PIT_BINS).long().clamp(0, PIT_BINS - 1)
    counts: list[int] = bins.bincount(minlength=PIT_BINS).tolist()
    return counts
