"""Explains predictions by Shapley values, by random walks from background rows to a row.

The value of a set of features S is the expectation of f with these features of the row x and all
others of a background row B, v(S) = E_B[f(x_S, B_¬S)] (interventional). The contribution of feature
j is its Shapley value: the mean of v(S ∪ j) − v(S) over all orders of the features, where S are
those before j. The estimate is unbiased (Štrumbelj and Kononenko 2014): each background row goes
to x along a random order and along its reverse (antithetic; Mitchell et al. 2022), changing one
feature at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.features.encoders import TensorEncoder
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows
from models.randomness import generator

STEPS = 1_024  # evaluations per row that the number of pairs aims at; half of them per way
MIN_PAIRS = 16  # whatever the number of features: a standard error needs them
BLOCK_VALUES = 2**22  # of encoded rows at a time: 16 MiB
KEPT_VALUES = 2**18  # of evaluations of explained rows, that are kept at a time: 2 MiB
MIN_ROWS = 16  # of the background: fewer would not estimate a standard error
MAX_ROWS = 256
MAX_BYTES = 2**18  # of the background together, as float32

Function = Callable[[Float[Tensor, "rows compact"]], Float[Tensor, "rows quantities"]]


@dataclass(frozen=True)
class Estimate:
    """Contributions with their standard errors: the deviation between pairs of walks ÷ √pairs."""

    values: Float[Tensor, "rows features quantities"]
    errors: Float[Tensor, "rows features quantities"]


@dataclass(frozen=True)
class Walks:
    """A random order of the features for each background row; its reverse is walked, too.

    The same walks explain all rows, so that an explanation does not depend on the other rows.
    """

    orders: Int[Tensor, "pairs features"]

    @classmethod
    def draw(cls, pairs: int, features: int, seed: int) -> "Walks":
        source = generator(seed, "explain")
        orders = [torch.randperm(features, generator=source) for _ in range(pairs)]
        return cls(torch.stack(orders))

    @cached_property
    def changed(self) -> Bool[Tensor, "pairs ways steps features"]:
        """Which features have the values of x after each step but the last of both ways.

        After j steps of the reversed order these are the features that the order has not yet
        changed after all its steps but j.
        """
        pairs, features = self.orders.shape
        place = torch.empty_like(self.orders)
        place.scatter_(1, self.orders, torch.arange(features).expand(pairs, -1))
        forward = place.unsqueeze(1) < torch.arange(1, features).view(1, -1, 1)
        return torch.stack([forward, ~forward.flip(1)], dim=1)

    def contributions(
        self,
        start: Float[Tensor, "pairs quantities"],
        between: Float[Tensor, "rows pairs ways steps quantities"],
        end: Float[Tensor, "rows quantities"],
    ) -> Estimate:
        """The Shapley values, from f along all walks.

        The differences along a walk add up to f(x) − f(b). So the contributions of a row add up to
        f(x) minus the mean of f over the background rows, whatever the error of each.

        Args:
            start: f of the background rows, one per pair.
            between: f after the steps of `changed`.
            end: f of the explained rows.
        """
        rows, pairs, features = len(end), *self.orders.shape
        ways = (rows, pairs, 2, 1, -1)
        path = torch.cat(
            [
                start.view(1, pairs, 1, 1, -1).expand(ways),
                between,
                end.view(rows, 1, 1, 1, -1).expand(ways),
            ],
            dim=3,
        )
        steps = path.diff(dim=3)
        forward, backward = steps[:, :, 0], steps[:, :, 1].flip(2)
        place = self.orders.to(end.device).view(1, pairs, features, 1).expand_as(forward)
        units = torch.empty_like(forward).scatter_(2, place, 0.5 * (forward + backward))
        # Of few background rows, each with one order of the features: both together.
        return Estimate(units.mean(1), units.std(1) / pairs**0.5)


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
        place = torch.zeros(self.num_features, dtype=torch.long)
        place[self.players] = torch.arange(len(self.players))
        # Which columns are those of x, for each evaluation of a row.
        masks = walks.changed.flatten(0, 2)[:, place[self.feature_of]].to(x.device)
        step = max(1, KEPT_VALUES // max(1, self.evaluations * end.shape[1]))
        shape = (len(end), self.num_features, end.shape[1])
        values, errors = end.new_zeros(shape), end.new_zeros(shape)  # 0 of features without columns
        for rows in torch.arange(len(x)).split(step):
            between = self._between(x[rows], of, masks, end)
            between = between.unflatten(0, (len(rows), self.pairs, 2, len(self.players) - 1))
            found = walks.contributions(start, between, end[rows])
            own = rows.unsqueeze(1), self.players
            values[own], errors[own] = found.values, found.errors
        return Estimate(values, errors), start.mean(0)

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


def can_be_explained(encoder: FeatureEncoder) -> bool:
    """Whether all features are columns: an element of a tensor, such as a pixel, is none."""
    return not any(isinstance(one, TensorEncoder) for one in encoder.encoders)


def choose_background(rows: Rows, seed: int, most: int) -> Float[Tensor, "some inputs"] | None:
    """A simple random sample of encoded rows; of weighted rows with probabilities ∝ the weights.

    Wide rows are fewer, so that they take at most `MAX_BYTES`. Weighted rows are drawn with
    replacement. None where fewer than `MIN_ROWS` fit or exist.
    """
    width = max(1, rows.inputs.shape[1])
    count = min(most, MAX_BYTES // (4 * width), len(rows))
    if count < MIN_ROWS:
        return None
    source = generator(seed, "background")
    if rows.weights is None:
        index = torch.randperm(len(rows), generator=source)[:count]
    else:
        weights = rows.weights if rows.weights.ndim == 1 else rows.weights.sum(1)
        index = torch.multinomial(weights.double().cpu(), count, True, generator=source)
    return rows.inputs[index.to(rows.inputs.device)].cpu()
