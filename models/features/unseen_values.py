"""Values in the place of those that no training row had: of new levels, and of missing values.

A network knows nothing of a level that no training row had, nor of a missing value in a column that
was never missing. The prediction of such a row is the mixture over values that the training rows
had (multiple imputation: Rubin 1987): each sample of a prediction has one of them. A new level is a
draw from the population of levels, so that all known ones count alike, whatever their rows. A
missing number is that of a training row.

L known levels are a sample of their population. If effects are normal, and s² is the variance of
the known ones, the effect of a new level has a t distribution with L − 1 degrees of freedom and
the scale s √(1 + 1/L) about their mean, while the mixture over known levels has the variance
s² (L − 1)/L. So each sample of the prediction also moves by w (f_a − f_b), with the predictions for
two more known levels a and b. 2w², the `excess`, makes the central 90 % of a normal distribution
as wide as those of the t distribution.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int
from torch import Tensor

from models.config.ranges import NotNegative, Number
from models.features.boosted import BoostedTrees
from models.features.categories import CategoryEncoder
from models.features.weighted import Weights
from models.randomness import generator

MOST = 16  # values that stand for one that is unknown
_LEAST_LEVELS = 3  # two levels say too little of a spread: a t distribution with one degree
_TAIL = 0.95


@dataclass(frozen=True)
class Imputed:
    """What stands for an unknown value of one column, each value with equal probability.

    Args:
        values: as the column's encoder reads them: codes of levels, numbers, microseconds.
        excess: the variance that samples have beside that of the mixture, relative to it.
    """

    values: Annotated[tuple[Number, ...], Len(1, MOST)]
    excess: NotNegative = 0.0

    @classmethod
    def of_levels(cls, encoder: CategoryEncoder) -> "Imputed":
        """At most `MOST` known levels, evenly spread by their first effect if there are effects."""
        codes = [*range(encoder.new), *[encoder.new + 1] * len(encoder.others)]
        if encoder.effects is not None:
            effects = np.round(encoder.effects.effects[0], 9)  # equal ones differ by rounding
            codes[: encoder.new] = np.argsort(effects, kind="stable").tolist()
        return cls(tuple(codes[i] for i in _even(len(codes))), _excess(len(codes)))

    @classmethod
    def of_numbers(
        cls, values: Float[np.ndarray, "rows"], weights: Weights | None
    ) -> "Imputed | None":
        """At most `MOST` quantiles of the values; None if all are missing."""
        known = ~np.isnan(values)
        order = np.argsort(values[known], kind="stable")
        ordered = values[known][order]
        if not len(ordered):
            return None
        each = np.ones(len(ordered)) if weights is None else weights[known][order]
        shares = (np.arange(MOST) + 0.5) / MOST
        places = np.searchsorted(np.cumsum(each) / each.sum(), shares).clip(max=len(ordered) - 1)
        return cls(tuple(ordered[places].tolist()))


def _even(count: int) -> Int[np.ndarray, "some"]:
    """The middles of at most `MOST` equal parts of 0 … count − 1."""
    some = min(count, MOST)
    return ((np.arange(some) + 0.5) * count / some).astype(np.int64)


def _excess(levels: int) -> float:
    """2w² = L/(L − 1) (1 + 1/L) (t/z)² − 1, with the 95 % quantiles t of L − 1 degrees, and z."""
    from scipy.stats import norm, t  # noqa: PLC0415 - not needed for predictions

    known = max(levels, _LEAST_LEVELS)
    ratio = t.ppf(_TAIL, known - 1) / norm.ppf(_TAIL)
    return float((known + 1) / (known - 1) * ratio**2 - 1)


@dataclass(frozen=True, eq=False)
class Copies:
    """The values in the place of those that some rows lack, all of the same columns.

    Args:
        values: an encoded row with each, whose other columns are not read.
    """

    values: Float[Tensor, "copies read"]
    excess: float
    boosted: BoostedTrees | None = None

    def __len__(self) -> int:
        return len(self.values)

    def fill(self, x: Float[Tensor, "rows compact"]) -> Float[Tensor, "filled compact"]:
        """Each row so many times, with each of the values: all of a row follow each other."""
        filled = x.repeat_interleave(len(self), 0)
        read = filled[:, : self.values.shape[1]]
        torch.where(read.isnan(), self.values.to(x).repeat(len(x), 1), read, out=read)
        if self.boosted is not None:  # the last columns: what trees say of what was filled in
            own = read.shape[1] - self.boosted.outputs
            read[:, own:] = self.boosted.to(x.device)(read[:, :own])
        return filled


@dataclass(frozen=True, eq=False)
class Imputation:
    """Fills encoded rows, in which NaN is what no training row had.

    Args:
        values: encoded rows, of each column as many different ones as it has `counts`.
        first: the first encoded column of each column that can be filled.
        counts, excess: of each of these the number of values, and `Imputed.excess`.
        boosted: trees whose outputs are the last columns; None if there are none.
    """

    values: Float[Tensor, "most read"]
    first: Int[Tensor, "columns"]
    counts: Sequence[int]
    excess: Sequence[float]
    boosted: BoostedTrees | None = None

    def runs(self, x: Float[Tensor, "rows compact"]) -> Iterator[tuple[slice, Copies | None]]:
        """Rows that follow each other and lack the same columns, with what fills them."""
        lacking = x.index_select(1, self.first.to(x.device)).isnan().cpu().numpy()
        changes = np.flatnonzero((lacking[1:] != lacking[:-1]).any(1)) + 1
        for start, stop in pairwise([0, *changes.tolist(), len(x)]):
            columns = np.flatnonzero(lacking[start]).tolist()
            copies = None
            if columns:
                most = max(self.counts[i] for i in columns)
                excess = max(self.excess[i] for i in columns)
                copies = Copies(self.values[:most], excess, self.boosted)
            yield slice(start, stop), copies


def in_random_order(imputed: Imputed, column: int) -> Float[np.ndarray, "most"]:
    """The values over and over, in an order that does not depend on those of other columns."""
    order = torch.randperm(len(imputed.values), generator=generator(0, "imputation", column))
    return np.resize(np.array(imputed.values)[order.numpy()], MOST)
