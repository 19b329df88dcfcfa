"""Conformal quantiles of parts of the rows: of groups, or of low, middle and high predictions.

A quantile of all calibration rows is right on average over all rows. With a quantile of each cell a
new row's interval contains its target with the wanted probability given its cell (Mondrian
conformal prediction: Vovk, Gammerman and Shafer 2005, §4.5), and so on average, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Int
from torch import Tensor

from models.config.ranges import Count, NotNegative, Number, Positive
from models.evaluation.conformal_rank import order_statistics, score_at
from models.evaluation.weighting import PerRow

MAX_CELLS = 100
MAX_SCORES = 999  # of a cell: 20 · 50 − 1, so that the usual levels are exact
SIZES = 3  # low, middle and high predictions
_LEVEL = 0.9  # of the intervals whose coverage is compared between sizes
_ERROR = 0.01  # the probability of cells by size where coverage is the same in all
_LEAST = 19  # scores of a cell by size, so that it has intervals of 0.95

Scores = Annotated[tuple[NotNegative, ...], Len(0, MAX_SCORES)]
Weights = Annotated[tuple[Positive, ...], Len(0, MAX_SCORES)]


@dataclass(frozen=True)
class Cells:
    """The conformity scores of each cell's calibration rows.

    Args:
        scores: of each cell, in increasing order; of many rows evenly spread order statistics.
        rows: the calibration rows of each cell.
        weights: of the scores; () if each is 1.
        edges: the predicted means between cells by size, in increasing order; () of groups.
    """

    scores: Annotated[tuple[Scores, ...], Len(1, MAX_CELLS)]
    rows: Annotated[tuple[Count, ...], Len(1, MAX_CELLS)]
    weights: Annotated[tuple[Weights, ...], Len(0, MAX_CELLS)] = ()
    edges: Annotated[tuple[Number, ...], Len(0, SIZES - 1)] = ()

    def of(self, means: PerRow, groups: Int[Tensor, "rows"] | None) -> Int[Tensor, "rows"]:
        """The cell of each row; −1 if it has none."""
        if self.edges:
            return size_of(means, self.edges)
        return torch.full_like(means, -1, dtype=torch.long) if groups is None else groups

    def quantiles(self, level: float, marginal: float) -> list[float]:
        """The bound on a new row's score in each cell.

        It is the ⌈(n + 1) · level⌉-th smallest of the cell's n scores. If n is too small, it is the
        larger of the cell's largest score and `marginal`. A cell that is like the others is then
        covered with a probability of `level`, and any cell with n/(n + 1).

        Args:
            marginal: the quantile of all calibration rows.
        """
        weights = self.weights or ((),) * len(self.scores)
        return [
            score_at(scores, each, level, max(marginal, *scores[-1:], 0.0))
            for scores, each in zip(self.scores, weights, strict=True)
        ]


def size_of(means: PerRow, edges: Sequence[float]) -> Int[Tensor, "rows"]:
    """The number of edges that each predicted mean is not below."""
    return torch.bucketize(means.contiguous(), means.new_tensor(edges), right=True)


def fit_cells(
    scores: PerRow,
    cells: Int[Tensor, "rows"],
    count: int,
    weights: PerRow,
    edges: Sequence[float] = (),
) -> Cells:
    """The scores of each of `count` cells; a row of cell −1 is in none."""
    masks = [cells == cell for cell in range(count)]
    ranked = [order_statistics(scores[mask], weights[mask], MAX_SCORES) for mask in masks]
    each: list[tuple[float, ...]] = []
    if any(w for _, w in ranked):
        each = [w or (1.0,) * len(values) for values, w in ranked]
    rows = tuple(int(mask.sum()) for mask in masks)
    return Cells(tuple(values for values, _ in ranked), rows, tuple(each), tuple(edges))


def fit_sizes(scores: PerRow, means: PerRow, weights: PerRow) -> Cells | None:
    """Cells for low, middle and high predictions; None if one quantile covers them alike.

    Cells by size have less rows each, and so wider intervals on average. They pay where the shares
    of rows below the quantile of all rows differ between thirds by Pearson's χ² test (two degrees
    of freedom, p = exp(−χ²/2)).
    """
    ordered = means.sort()[0]
    ends = [len(ordered) * third // SIZES for third in range(1, SIZES)]
    edges = [float(ordered[end]) for end in ends] if len(ordered) else []
    cells = size_of(means, edges)
    counts = torch.bincount(cells, minlength=SIZES)
    if len(set(edges)) < len(ends) or int(counts.min()) < _LEAST:
        return None
    below = scores <= score_at(*order_statistics(scores, weights), _LEVEL, math.inf)
    hits = torch.bincount(cells, below.double(), minlength=SIZES)
    share = hits.sum() / counts.sum()
    squares = (hits - counts * share) ** 2 / (counts * share * (1 - share))
    if not 0 < share < 1 or math.exp(-0.5 * float(squares.sum())) > _ERROR:
        return None
    return fit_cells(scores, cells, SIZES, weights, edges)
