"""Means of rows with weights, their standard errors, and counts: a row of weight w counts as w.

Every function gives for whole weights what it gives for rows that are repeated, and for a row of
weight 0 what it gives without the row. Weights of None are 1 each.

A standard error says how much a mean would vary if other rows were held out; not how much it would
vary with other rows to learn from.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json

PerRow = Float[Tensor, "rows"]
Weights = PerRow

WEIGHT = "weight"  # the entry of per-row scores that holds the rows' weights, if they have any


def filled(weights: Weights | None, values: Tensor) -> Weights:
    """The weights of the rows of `values` in double precision; 1 each if there are none."""
    if weights is None:
        return torch.ones(len(values), dtype=torch.float64, device=values.device)
    return weights.double()


def split_weights(scores: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Weights]:
    """The scores of the rows with a weight above 0, and these weights, on the CPU."""
    others = {name: values.cpu() for name, values in scores.items() if name != WEIGHT}
    weights = filled(scores.get(WEIGHT), next(iter(others.values()))).cpu()
    counts = weights > 0
    if bool(counts.all()):
        return others, weights
    return {name: values[counts] for name, values in others.items()}, weights[counts]


def mean(values: Tensor, weights: Weights | None = None) -> float:
    """Σ w_i v_i / Σ w_i."""
    w = filled(weights, values)
    return float((values * w).sum() / w.sum())


def standard_error(values: PerRow, weights: Weights | None = None) -> float:
    """s / √n, with s² = Σ w (v − v̄)² / (n − 1) and n = Σ w; NaN unless n is above 1."""
    w = filled(weights, values)
    n = float(w.sum())
    if n <= 1:
        return math.nan
    squares = (values - mean(values, w)).square() * w
    return math.sqrt(float(squares.sum()) / (n - 1) / n)


def of_mean(values: PerRow, weights: Weights | None = None) -> float | None:
    """`standard_error`; None for one row or infinite values."""
    error = standard_error(values, weights)
    return error if math.isfinite(error) else None


def of_root(squares: PerRow, weights: Weights | None = None) -> float | None:
    """The error of √(mean of the squares): that of the mean ÷ (2 √mean), by the delta method."""
    error, root = of_mean(squares, weights), math.sqrt(mean(squares, weights))
    return error if error is None or not root else error / (2 * root)


def of_share(values: PerRow, weights: Weights | None = None) -> float | None:
    """√(p̃ (1 − p̃) ÷ n) of a share of n rows, with p̃ = (successes + 2) ÷ (n + 4).

    Unlike that with the share itself it is not 0 if all rows are on one side. None without rows.
    Source: Agresti and Coull 1998, Approximate is better than "exact" for interval estimation.
    """
    w = filled(weights, values)
    rows = float(w.sum())
    if not rows:
        return None
    share = (rows * mean(values, w) + 2) / (rows + 4)
    return math.sqrt(share * (1 - share) / rows)


def means_by_level(
    rows: Mapping[str, Tensor], weights: Weights, levels: Sequence[float], names: Mapping[str, str]
) -> tuple[Json, Json]:
    """Means by level of per-row scores that are called `NAME_LEVEL`, and their standard errors.

    Args:
        names: of the per-row scores, by their names in the metrics. Unknown scores are left out;
            those that end with "coverage" are shares.
    """
    means: Json = {}
    errors: Json = {}
    for public, name in names.items():
        error = of_share if name.endswith("coverage") else of_mean
        columns = {f"{level:g}": rows.get(f"{name}_{level:g}") for level in levels}
        known = {level: values for level, values in columns.items() if values is not None}
        if known:
            means[public] = {level: mean(values, weights) for level, values in known.items()}
            errors[public] = {level: error(values, weights) for level, values in known.items()}
    return means, errors


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


def paired(scores: PerRow, others: PerRow, weights: Weights | None = None) -> Paired:
    """The mean of `scores` − `others`, with `standard_error` of the differences."""
    difference = scores.double() - others.double()
    return Paired(mean(difference, weights), standard_error(difference, weights))


def whole_if_possible(counts: Tensor) -> list[Any]:
    """Sums of weights, nested as the tensor: whole numbers if all of them are."""
    whole = counts.round()
    return (whole.long() if whole.equal(counts) else counts).tolist()


def equal_bins(weights: Weights, bins: int) -> Iterator[tuple[slice, Float[Tensor, "some"]]]:
    """The rows of each of `bins` bins, or fewer, of nearly equal weight, and their weights in it.

    The bins divide the rows in their order, whole rows as `tensor_split` does. A row on an edge is
    divided between bins.
    """
    row_ends = weights.cumsum(0)
    whole = float(weights.sum())
    bins = min(bins, max(1, int(whole)))
    size, rest = divmod(whole, bins)
    start = 0.0
    for place in range(1, bins + 1):
        end = place * size + min(place, rest)
        first = int(torch.searchsorted(row_ends, start, right=True))
        rows = slice(first, int(torch.searchsorted(row_ends, end)) + 1)
        upper = row_ends[rows].clamp(max=end)
        lower = (row_ends[rows] - weights[rows]).clamp(min=start)
        yield rows, (upper - lower).clamp(min=0)
        start = end
