"""Reliability of predicted probabilities: bins of confidence, their error, and that by chance.

Confidence is compared with accuracy in adaptive bins of nearly equal numbers of rows. Most
predictions of a good classifier are confident, so that most bins of equal width would have few rows
(Nguyen and O'Connor 2015, arXiv 1508.05154, §3.2). For numbers the probability integral transform
(PIT) F(y) is uniform if the predictive distributions F are right (Dawid 1984; Gneiting, Balabdaoui
and Raftery 2007).

The expected calibration error (ECE), with the bins b of confidence, W = Σ w, and the gap of a bin
Gᵦ = Σ_{i ∈ b} wᵢ (correctᵢ − confidenceᵢ):

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
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from models.config import Json
from models.evaluation.weighting import PerRow, Weights, equal_bins, filled, whole_if_possible

MAX_BINS = 15  # of confidence, as usual since Guo et al. 2017
PIT_BINS = 20  # so that the share inside central intervals of 10, 20, … 90 % is a sum of bins
_EXACT_BELOW = 25.0  # variance: above it the Gaussian's means are wrong by less than 0.2 %
_REACH = 8  # standard deviations on each side of the mean that the transform's window contains
_ROWS_AT_ONCE = 4_096  # bounds the memory of the transform

Vector = Float[np.ndarray, "rows"]
Bin = tuple[Int[np.ndarray, "some"], Float[np.ndarray, "some"]]
"""The numbers of its rows, and their weights: a row of weight 2 counts as two rows."""


def pit_histogram(pit: PerRow, weights: Weights | None = None) -> list[Any]:
    """How much weight has F(y) in each of `PIT_BINS` equal bins of [0, 1].

    NaN, which the paths of a diverging forecast have, is left out.
    """
    known = ~pit.isnan()
    bins = (pit[known] * PIT_BINS).long().clamp(0, PIT_BINS - 1)
    return whole_if_possible(bins.bincount(filled(weights, pit)[known], minlength=PIT_BINS))


def confidence_counts(
    confidence: PerRow, correct: PerRow, bins: int = MAX_BINS, weights: Weights | None = None
) -> list[list[int]]:
    """Number of rows, and of correct ones, by confidence in bins of equal width.

    Other rows fall into the same bins, so that the two can be compared bin by bin.
    """
    number = (confidence * bins).long().clamp(0, bins - 1)
    each = filled(weights, confidence)
    rows = number.bincount(each, minlength=bins)
    hits = number.bincount(each * correct.double(), minlength=bins)
    return [[round(n), round(k)] for n, k in zip(rows.tolist(), hits.tolist(), strict=True)]


def reliability_bins(
    confidence: PerRow, correct: PerRow, weights: Weights | None = None
) -> list[Json]:
    """Rows, mean confidence and accuracy of each of `equal_counts`, the least confident first.

    `weight` is what the rows count as, where that is not their number.
    """
    p, c = confidence.double().cpu().numpy(), correct.double().cpu().numpy()
    bins: list[Json] = []
    for rows, w in equal_counts(confidence, weights):
        weight = float(w.sum())
        means = {"confidence": float(w @ p[rows] / weight), "accuracy": float(w @ c[rows] / weight)}
        counted = {} if weight == len(rows) else {"weight": weight}
        bins.append({"rows": len(rows)} | counted | means)
    return bins


def equal_widths(confidence: PerRow, weights: Weights | None = None) -> Iterator[Bin]:
    """Bins that divide [0, 1] evenly."""
    bins = (confidence * MAX_BINS).long().clamp(0, MAX_BINS - 1).cpu().numpy()
    each = filled(weights, confidence).cpu().numpy()
    for number in np.unique(bins[each > 0]):
        rows = np.flatnonzero((bins == number) & (each > 0))
        yield rows, each[rows]


def equal_counts(confidence: PerRow, weights: Weights | None = None) -> Iterator[Bin]:
    """Bins of nearly equally many rows, which separate confidences that are close together.

    A row on the edge of weighted bins is divided between them.
    """
    order = confidence.argsort(stable=True)
    for rows, share in equal_bins(filled(weights, confidence)[order], MAX_BINS):
        inside = share > 0
        yield order[rows][inside].cpu().numpy(), share[inside].cpu().numpy()


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


def expected_calibration_error(
    confidence: PerRow, correct: PerRow, bins: Iterable[Bin]
) -> CalibrationError:
    """The calibration error with some bins: `equal_widths` or `equal_counts` of the confidence.

    Args:
        confidence: the probability of the predicted label.
        correct: 1 if the label is right, else 0.
    """
    p, c = (values.double().cpu().numpy() for values in (confidence, correct))
    p, parts = p.clip(0, 1), []
    for rows, w in bins:
        away, chance = c[rows] - p[rows], Chance.of(p[rows], w)
        gap = debiased = abs(float(w @ away))
        if chance.deviation:
            damping = math.exp(-0.5 * (gap / chance.deviation) ** 2) / chance.damping
            debiased -= chance.size * damping
        parts.append((gap, chance.size, debiased, w @ away**2, w.sum()))
    raw, expected, debiased, squares, total = map(float, np.sum(parts, axis=0))
    return CalibrationError(
        raw / total, expected / total, debiased / total, math.sqrt(squares) / total
    )


@dataclass(frozen=True)
class Chance:
    """How large X = Σ wᵢ (cᵢ − pᵢ) is by chance, for independent cᵢ with P(cᵢ = 1) = pᵢ.

    The number of wrong answers of some rows has a Poisson-binomial distribution, whose
    probabilities are the inverse Fourier transform of its characteristic function (Hong 2013, On
    computing the distribution function for the Poisson binomial distribution). A row of weight 2
    counts as two rows.

    Args:
        deviation: √Var X.
        size: E |X|.
        damping: E exp(−½ (X ÷ deviation)²).
    """

    deviation: float
    size: float
    damping: float

    @classmethod
    def of(cls, confidence: Vector, weights: Vector) -> "Chance":
        """Exact for small variances, otherwise those of a Gaussian."""
        wrong = 1 - confidence
        variance = float((weights * wrong * confidence).sum())
        deviation = math.sqrt(variance)
        if variance > _EXACT_BELOW or not variance:
            return cls(deviation, deviation * math.sqrt(2 / math.pi), math.sqrt(0.5))
        mean, total = float((weights * wrong).sum()), float(weights.sum())
        first = max(0, math.floor(mean - _REACH * deviation - _REACH))
        last = min(math.ceil(total), math.ceil(mean + _REACH * deviation + _REACH))
        counts = np.arange(first, last + 1)
        probability = _probabilities(wrong, weights, counts)
        away = counts - mean
        return cls(
            deviation,
            float(probability @ np.abs(away)),
            float(probability @ np.exp(-0.5 * away**2 / variance)),
        )


def _probabilities(
    wrong: Vector, weights: Vector, counts: Int[np.ndarray, "counts"]
) -> Float[np.ndarray, "counts"]:
    """P(count) for each of some consecutive counts, which hold nearly all probability."""
    size = len(counts)
    angles = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)  # the others are conjugates
    log = np.zeros(len(angles), complex)
    for start in range(0, len(wrong), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        terms = 1 + wrong[part, None] * (angles - 1)
        with np.errstate(divide="ignore"):  # a term is 0 at ½: then so is their product
            log += (weights[part, None] * np.log(terms)).sum(0)
    probabilities = np.fft.irfft(np.exp(log), size).clip(0)
    return np.roll(probabilities / probabilities.sum(), -(counts[0] % size))
