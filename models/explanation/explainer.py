"""Explains rows of a function of encoded rows by Shapley values, in bounded memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.explanation.shapley import Estimate, Walks

STEPS = 1_024  # evaluations per row that the number of pairs aims at; half of them per way
MIN_PAIRS = 16  # whatever the number of features: a standard error needs them
BLOCK_VALUES = 2**22  # of encoded rows at a time: 16 MiB
KEPT_ROWS = 2**16  # evaluations of explained rows that are kept at a time

Function = Callable[[Float[Tensor, "rows compact"]], Float[Tensor, "rows quantities"]]


@dataclass(frozen=True)
class Explainer:
    """Explains rows in terms of features, each of some columns of an encoded row.

    Further columns of the rows are not read.

    Args:
        background: a sample of the training rows, encoded.
        feature_of: the number of the feature of each column.
        num_features: features without a column contribute nothing.
    """

    background: Float[Tensor, "background compact"]
    feature_of: Int[Tensor, "compact"]
    num_features: int

    @cached_property
    def players(self) -> Int[Tensor, "players"]:
        """The numbers of the features that have columns."""
        return self.feature_of.unique()

    @property
    def pairs(self) -> int:
        """Background rows that are used, each with an order of the features and its reverse."""
        wanted = STEPS // (2 * max(1, len(self.players) - 1))
        return min(len(self.background), max(MIN_PAIRS, wanted))

    @property
    def evaluations(self) -> int:
        """Rows that are predicted for each explained row."""
        return 2 * self.pairs * (len(self.players) - 1)

    def explain(
        self,
        x: Float[Tensor, "rows compact"],
        of: Function,
        end: Float[Tensor, "rows quantities"],
        seed: int,
    ) -> tuple[Estimate, Float[Tensor, "quantities"]]:
        """The contributions of all features, and the base: the mean over the background rows.

        base + Σ contributions = `end`, up to rounding.

        Args:
            of: the function that is explained.
            end: its values at `x`.
            seed: of the orders of the features.
        """
        x = x[:, : len(self.feature_of)]
        walks = Walks.draw(self.pairs, len(self.players), seed)
        start = of(self.background[: self.pairs].to(x)).to(end)
        masks = self._masks(walks).to(x.device)
        step = max(1, KEPT_ROWS // max(1, self.evaluations))
        parts = []
        for rows in torch.arange(len(x)).split(step):
            between = self._between(x[rows], of, masks, end)
            shape = (len(rows), self.pairs, 2, len(self.players) - 1, end.shape[1])
            parts.append(walks.contributions(start, between.reshape(shape), end[rows]))
        return self._of_all(parts, end), start.mean(0)

    def _masks(self, walks: Walks) -> Tensor:
        """Which columns are those of x, for each evaluation of a row."""
        place = torch.zeros(self.num_features, dtype=torch.long)
        place[self.players] = torch.arange(len(self.players))
        return walks.changed.flatten(0, 2)[:, place[self.feature_of]]

    def _between(
        self, x: Tensor, of: Function, masks: Tensor, end: Tensor
    ) -> Float[Tensor, "evaluations quantities"]:
        """The function between background rows and `x`, all evaluations of one row after another.

        In the type of `end`.
        """
        background = self.background[: self.pairs].to(x)
        per_row, width = len(masks), max(1, x.shape[1])
        steps = max(1, len(masks) // self.pairs)
        parts = [end.new_empty(0, end.shape[1])]
        every = torch.arange(len(x) * per_row, device=x.device)
        for index in every.split(max(1, BLOCK_VALUES // width)):
            if not len(index):  # of a single feature there is nothing between
                break
            one = index % per_row
            mixed = torch.where(masks[one], x[index // per_row], background[one // steps])
            parts.append(of(mixed).to(end))
        return torch.cat(parts)

    def _of_all(self, parts: list[Estimate], end: Tensor) -> Estimate:
        """The estimate with zeros for features that have no columns."""
        shape = (len(end), self.num_features, end.shape[1])
        values, errors = end.new_zeros(shape), end.new_zeros(shape)
        if parts:
            values[:, self.players] = torch.cat([part.values for part in parts])
            errors[:, self.players] = torch.cat([part.errors for part in parts])
        return Estimate(values, errors)
