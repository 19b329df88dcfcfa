"""The probability that a path is beyond a threshold at some step up to each one.

With the values y_1 … y_h of a path, and S_h(t) = P(y_h > t) given the path before step h,

    P(max y_1 … y_h > t) = 1 − E[ 1{max y_1 … y_{h−1} ≤ t} (1 − S_h(t)) ],

an average over paths whose last step is exact instead of drawn (Rao–Blackwell): it has less error,
it is S at the first step, and never below the probability of the step itself. Below a threshold
likewise. The estimates of consecutive steps may fall by their sampling errors; the running maximum
is taken.
"""

import math

import torch
from jaxtyping import Float64
from torch import Tensor

PathSteps = Float64[Tensor, "paths steps"]


def ever_above(draws: PathSteps, survival: PathSteps, threshold: float, horizon: int) -> PathSteps:
    """What each path adds to the probability of a value above the threshold up to each step.

    Args:
        draws: whole paths; steps of several forecasts, each of `horizon`, one after the other.
        survival: P(y > threshold) of each step given the path before.
    """
    highest = _before(draws, horizon, -math.inf, torch.cummax)
    return 1 - (highest <= threshold) * (1 - survival)


def ever_below(draws: PathSteps, at_least: PathSteps, threshold: float, horizon: int) -> PathSteps:
    """The same of a value below the threshold.

    Args:
        at_least: P(y ≥ threshold) of each step given the path before.
    """
    lowest = _before(draws, horizon, math.inf, torch.cummin)
    return 1 - (lowest >= threshold) * at_least


def probability(parts: PathSteps, horizon: int) -> Float64[Tensor, "steps"]:
    """The mean over the paths, which never falls from step to step."""
    return parts.mean(0).unflatten(-1, (-1, horizon)).cummax(-1).values.flatten()


def _before(draws: PathSteps, horizon: int, start: float, extreme: object) -> PathSteps:
    """The extreme of the steps before each one."""
    steps = draws.unflatten(-1, (-1, horizon))
    first = torch.full_like(steps[..., :1], start)
    so_far = torch.cat([first, steps[..., :-1]], dim=-1)
    return extreme(so_far, dim=-1).values.flatten(-2)  # type: ignore[operator]
