"""A mixture of classical models, and the part that it has beside the network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Float64
from torch import Tensor

from models.config.ranges import Probability
from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.candidates import candidates
from models.forecasting.classics.member import Asked, Values
from models.forecasting.classics.smoothing import Smoothing
from models.forecasting.classics.stacking import log_scores, mixed, stack
from models.forecasting.rollout import Paths

_SCORED = Asked(horizon=1, draws=50, paths=4, seed=0)  # mixtures of 200 parts are scored
_LEAST = 0.02  # weight: members below it are left out


@dataclass(frozen=True)
class Weighted:
    """A member and its weight."""

    member: Smoothing | Autoregression
    weight: Probability


@dataclass(frozen=True)
class Classics:
    """
    Args:
        members: with weights that sum to 1.
        share: of all of them beside the network.
    """

    members: Annotated[tuple[Weighted, ...], Len(1, 32)]
    share: Probability = 1.0

    @classmethod
    def fit(
        cls,
        values: Values,
        targets: Float64[Tensor, "rows horizon"],
        seasons: Sequence[int],
        independent: float,
    ) -> "Classics":
        """The members that forecast these targets best, each from the history before it.

        Args:
            independent: the number of independent errors that the forecasts are worth.
        """
        asked = replace(_SCORED, horizon=targets.shape[1])
        known = (~values.isnan()).sum(1)
        tried = candidates(seasons, int(known.min()), int(known.max()))
        members = [one.adapted(values) for one in tried]
        # What they learned is of steps after most of these histories: it must not help here.
        alone = [replace(one, steps=1.0) for one in members]
        scores = torch.stack(
            [log_scores(one.paths(values, asked), targets).flatten() for one in alone]
        )
        weights = stack(scores, independent)
        return cls._of(members, weights)

    @classmethod
    def _of(
        cls, members: Sequence[Smoothing | Autoregression], weights: Float64[Tensor, "members"]
    ) -> "Classics":
        """Members with enough weight, the heaviest first."""
        kept = sorted(zip(weights.tolist(), range(len(members)), strict=True), reverse=True)
        kept = [(weight, k) for weight, k in kept if weight >= _LEAST] or kept[:1]
        total = sum(weight for weight, _ in kept)
        return cls(tuple(Weighted(members[k], weight / total) for weight, k in kept))

    def log_scores(
        self, values: Values, targets: Float64[Tensor, "rows horizon"]
    ) -> Float64[Tensor, "rows horizon"]:
        """Log density of each target under the mixture."""
        asked = replace(_SCORED, horizon=targets.shape[1])
        each = [
            log_scores(one.member.paths(values, asked), targets).flatten() for one in self.members
        ]
        weights = torch.tensor([one.weight for one in self.members], dtype=torch.float64)
        return mixed(torch.stack(each), weights).view_as(targets)

    def paths(self, values: Values, asked: Asked) -> Paths:
        """Sample paths: each member has draws in proportion to its weight."""
        weights = torch.tensor([one.weight for one in self.members], dtype=torch.float64)
        ends = [0, *(weights.cumsum(0) * asked.draws).round().int().tolist()[:-1], asked.draws]
        counts = [stop - start for start, stop in pairwise(ends)]
        parts = [
            one.member.paths(values, replace(asked, draws=count))
            for one, count in zip(self.members, counts, strict=True)
            if count
        ]
        return Paths.concatenate(parts, dim=0)
