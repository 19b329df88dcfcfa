"""Encodings of a number by its place among the training values.

Both store values of the training rows in increasing order and interpolate between them. Outside
their range they are constant, so that no input, however large, leaves the range of training.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int, Num

from models.config.ranges import Number, Probability
from models.features.encodings import Line

MAX_PIECES = 32  # per column; Gorishniy et al. 2022 found little beyond some tens
MAX_KNOTS = 256  # of a normal score: steps of 0.4 % of the rows
# Smaller values count as 0: a slope between values that differ by less than 1e-308 would overflow.
_TINY = 1e-290
MISSING = -1.0  # the position of a missing value; positions of others are 0 or more

Values = Float[np.ndarray, "rows"]


@dataclass(frozen=True)
class Distinct:
    """The distinct values of a column in increasing order, and the number of rows of each.

    With weights the numbers of rows are sums of weights.
    """

    values: Float[np.ndarray, "distinct"]
    counts: Num[np.ndarray, "distinct"]

    @classmethod
    def of(cls, values: Values, weights: Values | None = None) -> "Distinct":
        """Count values, none of which is missing."""
        rounded = np.where(np.abs(values) < _TINY, 0.0, values)
        if weights is None:
            return cls(*np.unique(rounded, return_counts=True))
        distinct, places = np.unique(rounded, return_inverse=True)
        return cls(distinct, np.bincount(places, weights, len(distinct)))

    def __len__(self) -> int:
        return len(self.values)

    def quantiles(self, most: int) -> Int[np.ndarray, "chosen"]:
        """Indices of at most `most` values: all, or quantiles that include both ends.

        A repeated value counts as one share at most. Otherwise a column with many zeros would
        leave few quantiles to its other values.
        """
        if len(self) <= most:
            return np.arange(len(self))
        weights = np.minimum(self.counts, self.counts.sum() / (most - 1))
        middle = np.cumsum(weights) - weights / 2
        shares = np.linspace(middle[0], middle[-1], most)
        return np.unique(np.searchsorted(middle, shares).clip(max=len(self) - 1))


@dataclass(frozen=True)
class NormalScore:
    """Φ⁻¹(F(x)), where F is the distribution function of the training values.

    F counts half of the rows that are equal to x. It is stored at the `knots` and interpolated
    linearly in Φ⁻¹ between them.
    """

    knots: Annotated[tuple[Number, ...], Len(2, MAX_KNOTS)]
    scores: Annotated[tuple[Number, ...], Len(2, MAX_KNOTS)]

    @classmethod
    def fit(cls, distinct: Distinct, most: int = MAX_KNOTS) -> "NormalScore":
        """Fit at most `most` knots to two or more distinct values."""
        middle = (np.cumsum(distinct.counts) - distinct.counts / 2) / distinct.counts.sum()
        index = distinct.quantiles(most)
        scores = torch.special.ndtri(torch.from_numpy(middle[index]))
        return cls(tuple(distinct.values[index].tolist()), tuple(scores.tolist()))

    @property
    def line(self) -> Line:
        return Line(self.knots, self.scores)


@dataclass(frozen=True)
class Pieces:
    """Piecewise-linear encoding: piece t is the share of bin t that lies below x.

        e_t(x) = min(max((x − b_t)/(b_{t+1} − b_t), 0), 1) − c_t

    with the bins' `edges` b and the mean c_t of the piece over the training rows (`centres`). All
    pieces of a missing value are 0, their mean.

    Source: Gorishniy et al. 2022 (arXiv 2203.05556), equation 1; here the outer pieces are
    bounded, too.
    """

    edges: Annotated[tuple[Number, ...], Len(2, MAX_PIECES + 1)]
    centres: Annotated[tuple[Probability, ...], Len(1, MAX_PIECES)]

    @classmethod
    def fit(cls, distinct: Distinct, most: int = MAX_PIECES) -> "Pieces":
        """Fit at most `most` bins to two or more distinct values; each may become an edge."""
        edges = distinct.values[distinct.quantiles(most + 1)]
        count = len(edges) - 1
        positions = np.interp(distinct.values, edges, np.arange(count + 1.0))
        bins = positions.astype(np.int64)
        rows = np.bincount(bins, distinct.counts, count + 1)
        partly = np.bincount(bins, distinct.counts * (positions - bins), count + 1)
        above = rows.sum() - np.cumsum(rows)
        centres = ((above + partly)[:count] / rows.sum()).clip(0, 1)
        return cls(tuple(edges.tolist()), tuple(centres.tolist()))

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def line(self) -> Line:
        """The position of a value: the number of bins below it, with fraction.

        `Expansion` makes the pieces of a position.
        """
        return Line(self.edges, range(len(self.edges)), MISSING)
