"""Encodings of a number by its place among the training values, and the expansion of compact rows.

A number with 32 pieces is stored as one position, a category with 256 levels as one code. A million
rows then stay small, and each mini-batch is expanded where it is used: in training, in prediction
and in an exported graph alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int, Num
from torch import Tensor

from models.config.ranges import Number, Probability
from models.features.encodings import Line
from models.tensors import TensorRecord

MAX_PIECES = 32  # per column; Gorishniy et al. 2022 found little beyond some tens
MAX_LEVELS = 256  # of one-hot slots: rarer levels share one
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


_TOTAL_PIECES = 1_024
_TOTAL_KNOTS = 8_192  # some 300 kB of JSON
_TOTAL_LEVELS = 2_048
_LEAST_KNOTS, _LEAST_LEVELS = 16, 8


@dataclass(frozen=True)
class Sizes:
    """The most pieces and knots of a number, and the most one-hot levels of a category."""

    pieces: int = MAX_PIECES
    knots: int = MAX_KNOTS
    levels: int = MAX_LEVELS

    @classmethod
    def shared_by(cls, *, numbers: int, categories: int) -> "Sizes":
        """The sizes of columns that share the totals of a model."""
        knots = max(_LEAST_KNOTS, _TOTAL_KNOTS // max(1, numbers))
        levels = max(_LEAST_LEVELS, _TOTAL_LEVELS // max(1, categories))
        return cls(
            pieces=min(MAX_PIECES, _TOTAL_PIECES // max(1, numbers)),
            knots=min(MAX_KNOTS, knots),
            levels=min(MAX_LEVELS, levels),
        )


_INT = torch.int64


@dataclass(frozen=True)
class Form:
    """The compact columns of an encoder, in this order, and what they become.

    Args:
        plain: number of columns that are inputs as they are.
        slots: one-hot slots of each column of codes.
        pieces: the pieces of each column of positions.
    """

    plain: int = 0
    slots: tuple[int, ...] = ()
    pieces: tuple[Pieces, ...] = ()

    @property
    def compact_width(self) -> int:
        return self.plain + len(self.slots) + len(self.pieces)

    @property
    def width(self) -> int:
        """Number of network inputs."""
        return self.plain + sum(self.slots) + self.num_pieces

    @property
    def num_pieces(self) -> int:
        return sum(map(len, self.pieces))


@dataclass(frozen=True)
class Expansion(TensorRecord):
    """Makes the network inputs of compact rows: plain columns, then one-hot slots, then pieces.

    Then come the columns `after` those of the forms, as they are. Others are not read.

    Each field has an element per input: the compact column that it is made of, and the code,
    lower edge or mean that makes it.
    """

    plain: Int[Tensor, "plain"]
    coded: Int[Tensor, "slots"]
    codes: Float[Tensor, "slots"]
    placed: Int[Tensor, "pieces"]
    lower: Float[Tensor, "pieces"]
    centres: Float[Tensor, "pieces"]
    after: Int[Tensor, "after"]

    @classmethod
    def of(cls, forms: Sequence[Form], num_after: int = 0) -> "Expansion":
        """The expansion of columns side by side."""
        plain: list[int] = []
        coded: list[tuple[int, int]] = []  # compact column and code of each slot
        placed: list[tuple[int, int, float]] = []  # compact column, bin and mean of each piece
        at = 0
        for form in forms:
            plain += range(at, at + form.plain)
            at += form.plain
            for count in form.slots:
                coded += [(at, code) for code in range(count)]
                at += 1
            for pieces in form.pieces:
                placed += [(at, j, centre) for j, centre in enumerate(pieces.centres)]
                at += 1
        return cls(
            torch.tensor(plain, dtype=_INT),
            torch.tensor([column for column, _ in coded], dtype=_INT),
            torch.tensor([code for _, code in coded], dtype=torch.float32),
            torch.tensor([column for column, _, _ in placed], dtype=_INT),
            torch.tensor([lower for _, lower, _ in placed], dtype=torch.float32),
            torch.tensor([centre for _, _, centre in placed], dtype=torch.float32),
            torch.arange(at, at + num_after),
        )

    @property
    def width(self) -> int:
        """Number of network inputs."""
        return len(self.plain) + len(self.coded) + len(self.placed) + len(self.after)

    @property
    def is_identity(self) -> bool:
        """Whether the first compact columns are the inputs."""
        return not len(self.coded) and not len(self.placed)

    def __call__(self, compact: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows inputs"]:
        """Return the network inputs of compact rows, on their device."""
        if self.is_identity:
            if compact.shape[1] == self.width:
                return compact
            # A copy: how a product rounds may depend on the alignment of its rows.
            return compact[:, : self.width].contiguous()
        own = self if compact.device == self.plain.device else self.to(compact.device)
        plain = compact.index_select(1, own.plain)
        slots = (compact.index_select(1, own.coded) == own.codes).to(compact)
        # In place on the copy that was selected: each of these is a pass over all pieces.
        positions = compact.index_select(1, own.placed)
        known = (positions + 1).clamp_(0, 1)  # 0 at MISSING = −1
        pieces = positions.sub_(own.lower).clamp_(0, 1).sub_(own.centres).mul_(known)
        return torch.cat([plain, slots, pieces, compact.index_select(1, own.after)], dim=1)
