"""A mixture of classical models, with its share beside the network.

The members' weights w maximise, for the steps of forecasts from earlier origins,

    1/N Σ_i log Σ_k w_k p_k(y_i)

(stacking of predictive distributions: Yao et al. 2018, Bayesian Analysis 13(3)). The sum is
concave. Expectation maximisation finds its maximum. The members have no prior: one that was worth
an observation kept a quarter of the weight with members whose late steps spread two or three times
too far (docs/verification.md, Widths of forecasts).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Float64
from torch import Tensor

from models.config.ranges import Flag, Probability
from models.forecasting.classics.autoregression import Autoregression
from models.forecasting.classics.effects import Effect, Effects, Regressors
from models.forecasting.classics.member import PathRequest, Values, num_known
from models.forecasting.classics.smoothing import Smoothing
from models.forecasting.rollout import Paths

_ROUNDS = 1_000
_FLOOR = -1e4  # nats: a forecast that is not finite


def log_scores(
    paths: Paths, targets: Float64[Tensor, "rows horizon"]
) -> Float64[Tensor, "rows horizon"]:
    """Log density of each value of u under the mixture of all paths; NaN where it is missing."""
    means, variances = paths.means.flatten(0, 1), paths.variances.flatten(0, 1)
    density = -0.5 * ((targets - means).square() / variances + (2 * torch.pi * variances).log())
    mixed = density.logsumexp(0) - math.log(len(means))
    return mixed.nan_to_num(_FLOOR, _FLOOR, _FLOOR).where(~targets.isnan(), torch.nan)


def stack(
    scores: Float64[Tensor, "members values"], prior: float = 0.0
) -> Float64[Tensor, "members"]:
    """The weights w, which sum to 1. Values with a missing score do not count.

    Args:
        prior: the weight c of a Dirichlet prior, which adds c Σ_k (1/K) log w_k to the mean.
    """
    scores = scores[:, ~scores.isnan().any(0)]
    weights = torch.full((len(scores),), 1 / len(scores), dtype=torch.float64)
    for _ in range(_ROUNDS):
        shares = (scores + weights.log().unsqueeze(1)).softmax(0).mean(1)
        found = (shares + prior / len(scores)) / (1 + prior)
        if bool((found - weights).abs().max() < 1e-9):
            break
        weights = found
    return weights


_MOST_LAGS, _STEPS_PER_LAG = 12, 10
_LEAST_LAGS = 4
_FINE = 167  # waves: all of a week of hours


def candidates(
    seasons: Sequence[int], shortest: int, longest: int
) -> tuple[Smoothing | Autoregression, ...]:
    """The members that are tried.

    Args:
        seasons: the shortest first.
        shortest, longest: steps of the histories that they are fitted to.
    """
    known = [season for season in seasons if 1 < season <= longest] or [1]
    lengths = (1, known[0]) if known[0] > 1 else (1,)
    smooth = [Smoothing(t, s) for s in lengths for t in ("none", "drift", "damped")]
    return (*smooth, *_autoregressions(known, shortest, longest))


def _autoregressions(seasons: Sequence[int], shortest: int, longest: int) -> list[Autoregression]:
    *others, season = seasons
    short = range(1, 1 + max(_LEAST_LAGS, min(_MOST_LAGS, longest // _STEPS_PER_LAG)))
    far = {s + k for s in seasons if s > 1 for k in (-1, 0, 1, s, s + 1)}
    lags = tuple(sorted(lag for lag in {*short, *far} if 0 < lag <= max(1, shortest // 3)))
    one = Autoregression(lags, season, shorter=tuple(others))
    found = [replace(one, changes=c) for c in (False, True)]
    if season == 1:
        return [*found, Autoregression((), changes=True)]
    found += [replace(one, changes=c, has_phases=True) for c in (False, True)]
    if others:
        found.append(replace(one, has_phases=True, waves=_FINE))
    for apart in (None, *others):
        over = replace(one, seasonal_changes=True, apart=apart)
        found += [over, replace(over, changes=True), replace(over, lags=())]
    return found


_SCORED = PathRequest(horizon=1, draws=50, paths=4, seed=0)  # mixtures of 200 parts are scored
_LEAST = 0.02  # weight: members below it are left out
_MOST = 32  # members


@dataclass(frozen=True)
class Weighted:
    """A member and its weight.

    Args:
        has_effects: whether it forecasts what is left without the effects of covariates.
    """

    member: Smoothing | Autoregression
    weight: Probability
    has_effects: Flag = False

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.member.name}, covariates" if self.has_effects else self.member.name

    def adapted(self, values: Values, effect: Effect | None) -> "Weighted":
        return replace(self, member=self.member.adapted(self._left(values, effect)))

    def paths(self, values: Values, asked: PathRequest, effect: Effect | None) -> Paths:
        """Sample paths, with the effects on the steps ahead."""
        paths = self.member.paths(self._left(values, effect), asked)
        if not self.has_effects or effect is None:
            return paths
        shift = effect.drawn(asked)
        return replace(paths, values=paths.values + shift, means=paths.means + shift)

    def log_scores(
        self, values: Values, targets: Float64[Tensor, "rows horizon"], effect: Effect | None
    ) -> Float64[Tensor, "rows horizon"]:
        asked = replace(_SCORED, horizon=targets.shape[1])
        return log_scores(self.paths(values, asked, effect), targets)

    def _left(self, values: Values, effect: Effect | None) -> Values:
        return values - effect.past if self.has_effects and effect is not None else values


@dataclass(frozen=True)
class Classics:
    """A mixture of classical models.

    Args:
        members: with weights that sum to 1.
        share: of all members beside the network.
        effects: of what is known ahead; None if nothing has any.
    """

    members: Annotated[tuple[Weighted, ...], Len(1, _MOST)]
    share: Probability = 1.0
    effects: Effects | None = None

    @classmethod
    def fit(
        cls,
        values: Values,
        targets: Float64[Tensor, "rows horizon"],
        seasons: Sequence[int],
        regressors: Regressors | None = None,
    ) -> "Classics":
        """The members that forecast these targets best, each from the history before it.

        Args:
            regressors: what is known of each step and of the steps ahead; None without any. If they
                have effects, each member is tried with them and without.
        """
        known = num_known(values)
        effects = None if regressors is None else Effects.fit(values, regressors, min(seasons))
        effect = _effect(effects, values, regressors)
        members = [
            Weighted(member, 0.0, has_effects).adapted(values, effect)
            for has_effects in ((False,) if effects is None else (False, True))
            for member in candidates(seasons, int(known.min()), int(known.max()))
        ]
        # What they learned is of steps after most of these histories: it must not help here.
        alone = [replace(one, member=replace(one.member, steps=1.0)) for one in members]
        scores = torch.stack([one.log_scores(values, targets, effect).flatten() for one in alone])
        weights = stack(scores).tolist()
        heaviest = sorted(zip(weights, range(len(members)), strict=True), reverse=True)[:_MOST]
        kept = [(weight, k) for weight, k in heaviest if weight >= _LEAST] or heaviest[:1]
        total = sum(weight for weight, _ in kept)
        chosen = tuple(replace(members[k], weight=weight / total) for weight, k in kept)
        used = any(one.has_effects for one in chosen)
        return cls(chosen, effects=effects if used else None)

    def log_scores(
        self,
        values: Values,
        targets: Float64[Tensor, "rows horizon"],
        regressors: Regressors | None = None,
    ) -> Float64[Tensor, "rows horizon"]:
        """Log density of each target under the mixture."""
        effect = _effect(self.effects, values, regressors)
        each = [
            math.log(member.weight) + member.log_scores(values, targets, effect)
            for member in self.members
        ]
        return torch.stack(each).logsumexp(0)

    def paths(
        self, values: Values, asked: PathRequest, regressors: Regressors | None = None
    ) -> Paths:
        """Sample paths: each member has draws in proportion to its weight."""
        weights = torch.tensor([member.weight for member in self.members], dtype=torch.float64)
        ends = [0, *(weights.cumsum(0) * asked.draws).round().int().tolist()[:-1], asked.draws]
        counts = [stop - start for start, stop in pairwise(ends)]
        effect = _effect(self.effects, values, regressors)
        parts = [
            member.paths(values, replace(asked, draws=count), effect)
            for member, count in zip(self.members, counts, strict=True)
            if count
        ]
        return Paths.concatenate(parts, dim=0)


def _effect(
    effects: Effects | None, values: Values, regressors: Regressors | None
) -> Effect | None:
    return None if effects is None or regressors is None else effects.of(values, regressors)
