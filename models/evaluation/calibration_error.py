"""The expected calibration error (ECE) of a classifier, and how much of it is chance.

With the bins b of confidence, W = Σ w, and the gap of a bin Gᵦ = Σ_{i ∈ b} wᵢ (correctᵢ −
confidenceᵢ):

- raw: Σᵦ |Gᵦ| ÷ W (Guo et al. 2017). A perfect model does not score 0, because |Gᵦ| > 0 by chance;
- expected: Σᵦ E|Xᵦ| ÷ W, with Xᵦ the gap of a model whose confidences are right;
- debiased: Σᵦ (|Gᵦ| − E|Xᵦ| · k(Gᵦ) ÷ E k(Xᵦ)) ÷ W with k(g) = exp(−½ g² ÷ Var Xᵦ).

The debiased error subtracts in each bin what chance explains, and less where the gap is too large
for chance. Its mean is exactly 0 for a perfect model with any number of rows, so that single values
are negative about as often as positive; where all gaps are large it is the raw one. In between it
is too low, in each bin by at most 0.46 √Var Xᵦ ÷ W, together by at most 0.58 of the expected
error, while the raw one is too high: no estimator of |gap| is without bias everywhere. Kumar, Liang
and Ma 2019 (arXiv 1909.10155) subtract the bias of the squared error, which is possible everywhere;
but its root has one again.

The standard error is √(Σ wᵢ (correctᵢ − confidenceᵢ)²) ÷ W: that of a sum whose bins keep their
signs, about the mean 0. It is a little too large for confidences that are wrong, and for gaps
near 0.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import Json
from models.evaluation.chance import Chance
from models.evaluation.reliability import MAX_BINS
from models.evaluation.weighting import Weights, bin_ends, shares

ECE_BINS = MAX_BINS  # 15, as usual since Guo et al. 2017

Vector = Float[np.ndarray, "rows"]
Bin = tuple[Int[np.ndarray, "some"], Float[np.ndarray, "some"]]
"""The numbers of its rows, and their weights: a row of weight 2 counts as two rows."""


@dataclass(frozen=True)
class CalibrationError:
    """An ECE: as computed, as a perfect model with these confidences has it, and without chance."""

    raw: float
    expected: float
    debiased: float
    standard_error: float

    def describe(self, name: str) -> Json:
        """The errors under their names in a version's metrics."""
        return {
            name: self.raw,
            f"{name}_expected": self.expected,
            f"{name}_debiased": self.debiased,
        }


def equal_widths(
    confidence: Float[Tensor, "rows"], weights: Weights | None = None
) -> Iterator[Bin]:
    """Bins that divide [0, 1] evenly."""
    bins = (confidence * ECE_BINS).long().clamp(0, ECE_BINS - 1).cpu().numpy()
    each = _weights(confidence, weights)
    for one in np.unique(bins[each > 0]):
        rows = np.flatnonzero((bins == one) & (each > 0))
        yield rows, each[rows]


def equal_counts(
    confidence: Float[Tensor, "rows"], weights: Weights | None = None
) -> Iterator[Bin]:
    """Bins of nearly equally many rows, which separate confidences that are close together.

    A row on the edge of weighted bins is divided between them. Source: Nguyen and O'Connor 2015
    (arXiv 1508.05154), §3.2.
    """
    order = confidence.argsort(stable=True).cpu()
    if weights is None:
        for part in order.tensor_split(min(ECE_BINS, len(order))):
            yield part.numpy(), np.ones(len(part))
        return
    ordered = weights.double().cpu()[order]
    whole = float(ordered.sum())
    ends = bin_ends(whole, min(ECE_BINS, max(1, int(whole))))
    for share in shares(ordered, ends):
        some = share > 0
        yield order[some].numpy(), share[some].numpy()


def expected_calibration_error(
    confidence: Float[Tensor, "rows"], correct: Float[Tensor, "rows"], bins: Iterable[Bin]
) -> CalibrationError:
    """The calibration error with some bins: `equal_widths` or `equal_counts` of the confidence.

    Args:
        confidence: the probability of the predicted label.
        correct: 1 if the label is right, else 0.
    """
    p, c = (values.double().cpu().numpy() for values in (confidence, correct))
    p, parts = p.clip(0, 1), []
    for rows, weights in bins:
        square = (weights * (c[rows] - p[rows]) ** 2).sum()
        parts.append((*_of_bin(p[rows], c[rows], weights), square, weights.sum()))
    raw, expected, debiased, squares, total = (sum(part) for part in zip(*parts, strict=True))
    error = math.sqrt(squares) / total
    return CalibrationError(
        float(raw / total), float(expected / total), float(debiased / total), float(error)
    )


def _weights(confidence: Float[Tensor, "rows"], weights: Weights | None) -> Vector:
    return (torch.ones_like(confidence) if weights is None else weights).double().cpu().numpy()


def _of_bin(p: Vector, c: Vector, w: Vector) -> tuple[float, float, float]:
    """|G|, E|X| and the debiased |G| of a bin."""
    gap, chance = abs(float((w * (c - p)).sum())), Chance.of(p, w)
    if not chance.deviation:
        return gap, 0.0, gap
    damping = math.exp(-0.5 * (gap / chance.deviation) ** 2) / chance.damping
    return gap, chance.size, gap - chance.size * damping
