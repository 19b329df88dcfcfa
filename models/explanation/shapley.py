"""Shapley values by random walks from background rows to the row that is explained.

The value of a set of features S is the expectation of f with these features of the row x and all
others of a background row B, v(S) = E_B[f(x_S, B_¬S)] (interventional). The contribution of feature
j is its Shapley value: the mean of v(S ∪ j) − v(S) over all orders of the features, where S are
those before j. The estimate is unbiased (Štrumbelj and Kononenko 2014): each background row goes
to x along a random order and along its reverse (antithetic; Mitchell et al. 2022), changing one
feature at a time.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.randomness import generator


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
    ) -> "Estimate":
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
        return Estimate.of(units)


@dataclass(frozen=True)
class Estimate:
    """Contributions with their standard errors.

    The error is of two kinds together: there are few background rows, and each has one order of the
    features. It is the deviation between pairs of walks ÷ √pairs.
    """

    values: Float[Tensor, "rows features quantities"]
    errors: Float[Tensor, "rows features quantities"]

    @classmethod
    def of(cls, units: Float[Tensor, "rows pairs features quantities"]) -> "Estimate":
        return cls(units.mean(1), units.std(1) / units.shape[1] ** 0.5)
