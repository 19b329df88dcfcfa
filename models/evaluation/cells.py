"""Conformal quantiles of parts of the rows: of groups, or of low, middle and high predictions.

Predictions are low or high by their mean or by their deviation.

A quantile of all calibration rows is right on average over all rows. With a quantile of each cell a
new row's interval contains its target with the wanted probability given its cell (Mondrian
conformal prediction: Vovk, Gammerman and Shafer 2005, §4.5), and so on average, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from annotated_types import Len
from jaxtyping import Int
from torch import Tensor

from models.config.ranges import Count, NotNegative, Number, Positive
from models.evaluation.conformal_rank import order_statistics, score_at
from models.evaluation.weighting import PerRow
from models.features.row_groups import MAX_CELLS

MAX_SCORES = 999  # of a cell: 20 · 50 − 1, so that the usual levels are exact
SIZES = 3  # low, middle and high means or deviations
_LEVEL = 0.9  # of the intervals whose coverage is compared between sizes
_ERROR = 0.01  # the probability of cells without groups where coverage is the same in all
_LEAST = 19  # scores of a cell without groups, so that it has intervals of 0.95

Scores = Annotated[tuple[NotNegative, ...], Len(0, MAX_SCORES)]
Weights = Annotated[tuple[Positive, ...], Len(0, MAX_SCORES)]
By = Literal["size", "deviation"]
"""What divides rows without groups: the predicted mean, or the total standard deviation."""


@dataclass(frozen=True)
class Cells:
    """The conformity scores of each cell's calibration rows.

    Args:
        scores: of each cell, in increasing order; of many rows evenly spread order statistics.
        rows: the calibration rows of each cell.
        weights: of the scores; () if each is 1.
        edges: the predicted means or deviations between cells, in increasing order; () of groups.
        by: which of these they are.
    """

    scores: Annotated[tuple[Scores, ...], Len(1, MAX_CELLS)]
    rows: Annotated[tuple[Count, ...], Len(1, MAX_CELLS)]
    weights: Annotated[tuple[Weights, ...], Len(0, MAX_CELLS)] = ()
    edges: Annotated[tuple[Number, ...], Len(0, SIZES - 1)] = ()
    by: By = "size"

    def of(
        self, means: PerRow, variances: PerRow, groups: Int[Tensor, "rows"] | None
    ) -> Int[Tensor, "rows"]:
        """The cell of each row; −1 if it has none."""
        if self.edges:
            return _cell_of(means if self.by == "size" else variances.sqrt(), self.edges)
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


def _cell_of(values: PerRow, edges: Sequence[float]) -> Int[Tensor, "rows"]:
    """The number of edges that each value is not below."""
    return torch.bucketize(values.contiguous(), values.new_tensor(edges), right=True)


def fit_cells(
    scores: PerRow,
    cells: Int[Tensor, "rows"],
    count: int,
    weights: PerRow,
) -> Cells:
    """The scores of each of `count` cells; a row of cell −1 is in none."""
    masks = [cells == cell for cell in range(count)]
    ranked = [order_statistics(scores[mask], weights[mask], MAX_SCORES) for mask in masks]
    each: list[tuple[float, ...]] = []
    if any(w for _, w in ranked):
        each = [w or (1.0,) * len(values) for values, w in ranked]
    rows = tuple(int(mask.sum()) for mask in masks)
    return Cells(tuple(values for values, _ in ranked), rows, tuple(each))


def fit_thirds(scores: PerRow, values: Mapping[By, PerRow], weights: PerRow) -> Cells | None:
    """Cells for low, middle and high predictions; None if one quantile covers them alike.

    Such cells have less rows each, and so wider intervals on average. They pay where the shares of
    rows below the quantile of all rows differ between thirds by Pearson's χ² test (two degrees of
    freedom, p = exp(−χ²/2), times the number of kinds of values by Bonferroni). Of several kinds
    the one counts whose thirds differ most.
    """
    below = scores <= score_at(*order_statistics(scores, weights), _LEVEL, math.inf)
    best: Cells | None = None
    least = _ERROR / len(values)
    for by, of_rows in values.items():
        ordered = of_rows.sort()[0]
        ends = [len(ordered) * third // SIZES for third in range(1, SIZES)]
        edges = [float(ordered[end]) for end in ends] if len(ordered) else []
        cells = _cell_of(of_rows, edges)
        counts = torch.bincount(cells, minlength=SIZES)
        if len(set(edges)) < len(ends) or math.isinf(edges[-1]) or int(counts.min()) < _LEAST:
            continue
        hits = torch.bincount(cells, below.double(), minlength=SIZES)
        share = hits.sum() / counts.sum()
        squares = (hits - counts * share) ** 2 / (counts * share * (1 - share))
        p = math.exp(-0.5 * float(squares.sum())) if 0 < share < 1 else 1.0
        if p <= least:
            found = fit_cells(scores, cells, SIZES, weights)
            best, least = replace(found, edges=tuple(edges), by=by), p
    return best
