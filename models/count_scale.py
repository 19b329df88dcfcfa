"""The scale of counts with many zeros: normal scores of a hurdle distribution.

P(Y = 0) = zero; sizes above have a negative binomial cut off at zero, with mean μ and size r before
the cut (r = ∞ is Poisson): P(k) ∝ Γ(k + r)/(k! Γ(r)) (μ/(r + μ))^k. Source: Mullahy 1986,
"Specification and testing of some modified count data models", Journal of Econometrics 33.

With a_k = Φ⁻¹(P(Y ≤ k)) a count k is read as the mean ρ_k of a standard normal between a_{k−1} and
a_k. These have mean m and deviation d over the rows. A latent u is observed as k between
e_{k−1} and e_k, e_k = m + d a_k. So what a Gaussian fitted to the ρ predicts, N(m, d²), has exactly
the hurdle's probabilities; a conditional Gaussian moves the share of zeros and the sizes together.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from torch.special import ndtri

from models.config.ranges import Number, Positive

Values = Float[Tensor, "*shape"]

_SIZES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0, 25.0, 60.0, 1e6)  # of r
_TAIL = 1e-12  # probability above the table; beyond it edges go on evenly
_MOST = 4_096  # numbers in the table
_BELOW = 1e-6  # width of the scale between 0 and its edge: u below it is a 0, not a part of one


@dataclass(frozen=True)
class CountScale:
    """g with e_k = g(k + ½), linear between them.

    Args:
        zero: P(Y = 0), above 0 and below 1.
        mean, size: μ and r of the sizes above 0.
        centre, spread: m and d.
    """

    zero: Annotated[float, Field(strict=True, gt=0, lt=1)]
    mean: Positive
    size: Positive
    centre: Number = 0.0
    spread: Positive = 1.0
    kind: Literal["counts"] = "counts"

    @classmethod
    def fit(cls, values: Float[np.ndarray, "rows"]) -> "CountScale | None":
        """The most likely hurdle of whole numbers ≥ 0; None without a zero or without a size."""
        sizes = values[values > 0]
        if len(sizes) in (0, len(values)):
            return None
        mean, size = _most_likely(sizes)
        plain = cls(1 - len(sizes) / len(values), mean, size)
        read = plain.represent(torch.from_numpy(values.astype(np.float64)))
        return cls(plain.zero, mean, size, float(read.mean()), float(read.std(correction=0)))

    def __call__(self, y: Values) -> Values:
        return self.centre + self.spread * _interpolate(y + 0.5, self._edges)

    def inverse(self, u: Values) -> Values:
        return _invert((u - self.centre) / self.spread, self._edges) - 0.5

    def log_derivative(self, y: Values) -> Values:
        """Of the piece that holds y."""
        edges = self._edges.to(y)
        index = (y + 0.5).floor().clamp(0, len(edges) - 2).nan_to_num().long()
        return (edges[index + 1] - edges[index]).log() + math.log(self.spread)

    def represent(self, y: Values) -> Values:
        """ρ, by which a count is read; linear between whole numbers."""
        return _interpolate(y.clamp(min=0), self._scores)

    @cached_property
    def _table(self) -> tuple[Tensor, Tensor]:
        """P(Y = k) and P(Y > k), k = 0, 1, …"""
        count = math.ceil(self.mean + 40 * math.sqrt(self.mean + self.mean**2 / self.size)) + 40
        k = torch.arange(1, min(count, 4 * _MOST), dtype=torch.float64)
        sizes = torch.softmax(_log_weights(k, self.mean, self.size), 0) * (1 - self.zero)
        mass = torch.cat([sizes.new_tensor([self.zero]), sizes])
        above = mass.flip(0).cumsum(0).flip(0) - mass
        kept = min(_MOST, max(3, int((above > _TAIL).sum())))
        return mass[:kept], above[:kept].clamp(min=1e-300)

    @cached_property
    def _edges(self) -> Float[Tensor, "numbers"]:
        """a_{−1}, a_0, a_1, …, where a_{−1} is just below a_0: lower u are zeros."""
        edges = -ndtri(self._table[1])
        return torch.cat([edges[:1] - _BELOW, edges])

    @cached_property
    def _scores(self) -> Float[Tensor, "numbers"]:
        """ρ_k = (φ(a_{k−1}) − φ(a_k)) / P(Y = k)."""
        mass, above = self._table
        a = -ndtri(above)
        density = torch.exp(-0.5 * a.square()) / math.sqrt(2 * math.pi)
        before = torch.cat([density.new_zeros(1), density[:-1]])
        scores = (before - density) / mass
        low = torch.cat([a.new_tensor([-math.inf]), a[:-1]])
        return torch.minimum(torch.maximum(scores, low), a)  # rounding of small probabilities


def _most_likely(sizes: Float[np.ndarray, "some"]) -> tuple[float, float]:
    """μ and r: for each r the μ that gives the sizes' mean, which is the most likely one.

    Half a row of one size more than the largest stands for what was not seen yet: sizes that were
    always 1 do not say that no other can be.
    """
    k, counts = np.unique(sizes, return_counts=True)
    k, counts = np.append(k, k[-1] + 1), np.append(counts, 0.5)
    values, weights = torch.from_numpy(k.astype(np.float64)), torch.from_numpy(counts).double()
    average = float((k * counts).sum() / counts.sum())

    def log_likelihood(size: float) -> float:
        mean = _mean_before_cut(average, size)
        log_mass = _log_weights(values, mean, size) - _log_above_zero(mean, size)
        log_mass = log_mass - size * math.log1p(mean / size)
        return float((weights * log_mass).sum())

    size = max(_SIZES, key=log_likelihood)
    return _mean_before_cut(average, size), size


def _mean_before_cut(average: float, size: float) -> float:
    """μ with μ / P(Y > 0) = average, which is above 1; by bisection."""
    low, high = 1e-6, max(average, 1e-6)
    for _ in range(60):
        middle = 0.5 * (low + high)
        mean = middle / math.exp(_log_above_zero(middle, size))
        low, high = (middle, high) if mean < average else (low, middle)
    return 0.5 * (low + high)


def _log_above_zero(mean: float, size: float) -> float:
    """log(1 − (1 + μ/r)^−r)."""
    return math.log(-math.expm1(-size * math.log1p(mean / size)))


def _log_weights(k: Values, mean: float, size: float) -> Values:
    """log P(k) of the negative binomial, without the power (1 + μ/r)^−r."""
    r = k.new_tensor(size)
    return (
        torch.lgamma(k + r)
        - torch.lgamma(r)
        - torch.lgamma(k + 1)
        + k * (math.log(mean) - math.log(size + mean))
    )


def _interpolate(x: Values, table: Float[Tensor, "numbers"]) -> Values:
    """The table at x, linear between whole numbers and beyond the ends."""
    table = table.to(x)
    index = x.floor().clamp(0, len(table) - 2).nan_to_num().long()
    return table[index] + (x - index) * (table[index + 1] - table[index])


def _invert(u: Values, table: Float[Tensor, "numbers"]) -> Values:
    """x with `_interpolate(x, table)` = u."""
    table = table.to(u)
    index = (torch.searchsorted(table, u.contiguous(), right=True) - 1).clamp(0, len(table) - 2)
    slope = (table[index + 1] - table[index]).clamp(min=1e-12)
    return index + (u - table[index]) / slope
