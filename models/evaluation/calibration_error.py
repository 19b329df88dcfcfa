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
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import Json
from models.evaluation.chance import Chance
from models.evaluation.reliability import MAX_BINS

ECE_BINS = MAX_BINS  # 15, as usual since Guo et al. 2017

Vector = Float[np.ndarray, "rows"]


@dataclass(frozen=True)
class CalibrationError:
    """An ECE: as computed, of a perfect model with these confidences, without chance."""

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


def equal_widths(confidence: Float[Tensor, "rows"]) -> Int[Tensor, "rows"]:
    """The bin of each row; the bins divide [0, 1] evenly."""
    return (confidence * ECE_BINS).long().clamp(0, ECE_BINS - 1)


def equal_counts(confidence: Float[Tensor, "rows"]) -> Int[Tensor, "rows"]:
    """The bin of each row; bins have nearly equal numbers of rows, in the order of confidence.

    They separate confidences that are close together. Source: Nguyen and O'Connor 2015 (arXiv
    1508.05154), §3.2.
    """
    order = confidence.argsort(stable=True)
    sizes = [len(part) for part in order.tensor_split(min(MAX_BINS, len(order)))]
    bins = torch.empty_like(order)
    bins[order] = torch.arange(len(sizes), device=order.device).repeat_interleave(
        torch.tensor(sizes, device=order.device)
    )
    return bins


def expected_calibration_error(
    confidence: Float[Tensor, "rows"],
    correct: Float[Tensor, "rows"],
    bins: Int[Tensor, "rows"],
    weights: Float[Tensor, "rows"] | None = None,
) -> CalibrationError:
    """The calibration error with some bins, such as `equal_widths` of the confidence.

    Args:
        confidence: the probability of the predicted label.
        correct: 1 if the label is right, else 0.
        weights: a row of weight 2 counts as two rows, one of weight 0 not at all.
    """
    p, c = (values.double().cpu().numpy() for values in (confidence, correct))
    w = np.ones_like(p) if weights is None else weights.double().cpu().numpy()
    p, total = p.clip(0, 1), float(w.sum())
    parts = [_of_bin(p[i], c[i], w[i]) for i in _rows_of(bins.cpu().numpy(), w > 0)]
    raw, expected, debiased = (float(sum(part)) / total for part in zip(*parts, strict=True))
    error = math.sqrt(float((w * (c - p) ** 2).sum())) / total
    return CalibrationError(raw, expected, debiased, error)


def _rows_of(
    bins: Int[np.ndarray, "rows"], counted: np.ndarray
) -> Iterator[Int[np.ndarray, "some"]]:
    """The numbers of the rows of each bin that has any."""
    for one in np.unique(bins[counted]):
        yield np.flatnonzero((bins == one) & counted)


def _of_bin(p: Vector, c: Vector, w: Vector) -> tuple[float, float, float]:
    """|G|, E|X| and the debiased |G| of a bin."""
    gap, chance = abs(float((w * (c - p)).sum())), Chance.of(p, w)
    if not chance.deviation:
        return gap, 0.0, gap
    damping = math.exp(-0.5 * (gap / chance.deviation) ** 2) / chance.damping
    return gap, chance.size, gap - chance.size * damping
