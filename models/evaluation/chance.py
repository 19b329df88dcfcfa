"""What a perfectly calibrated classifier gets by chance: the size of Σ (correct − confidence).

If the confidences are right, the number of wrong answers of some rows has a Poisson-binomial
distribution, whose probabilities are the inverse Fourier transform of its characteristic function
(Hong 2013, On computing the distribution function for the Poisson binomial distribution).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_EXACT_BELOW = 25.0  # variance: above it the Gaussian's means are wrong by less than 0.2 %
_REACH = 8  # standard deviations on each side of the mean that the transform's window contains
_ROWS_AT_ONCE = 4_096  # bounds the memory of the transform


@dataclass(frozen=True)
class Chance:
    """How large X = Σ wᵢ (cᵢ − pᵢ) is by chance, for independent cᵢ with P(cᵢ = 1) = pᵢ.

    A row of weight 2 counts as two rows.

    Args:
        deviation: √Var X.
        size: E |X|.
        damping: E exp(−½ (X ÷ deviation)²).
    """

    deviation: float
    size: float
    damping: float

    @classmethod
    def of(
        cls, confidence: Float[np.ndarray, "rows"], weights: Float[np.ndarray, "rows"]
    ) -> "Chance":
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
    wrong: Float[np.ndarray, "rows"],
    weights: Float[np.ndarray, "rows"],
    counts: np.ndarray,
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
    found = np.fft.irfft(np.exp(log), size).clip(0)
    return np.roll(found / found.sum(), -(counts[0] % size))
