"""Expected costs of acting on a number, per unit above and below the truth.

The cost over·(a − y)⁺ + under·(y − a)⁺ is the pinball loss, whose expectation is least at the
quantile of level under/(over + under) (Koenker and Bassett 1978; the newsvendor's critical ratio).
A known truth costs nothing: its value is the whole expected cost.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.number_mixture import NumberMixture

PerSample = Float[Tensor, "samples rows"]


def decide(mixture: NumberMixture, over: float, under: float) -> dict[str, Tensor]:
    """The best number and its costs."""
    action = mixture.quantile(level(over, under))
    cost = mixture.pinball(action, over, under)
    return arrays(action, cost, mixture.least_pinball(over, under))


def level(over: float, under: float) -> float:
    """The level of the quantile that costs least."""
    return under / (over + under)


def arrays(
    action: Float[Tensor, "rows"], cost: PerSample, least: PerSample | None
) -> dict[str, Tensor]:
    """The arrays of a decision.

    Args:
        cost: of the action, under each sample.
        least: of each sample's best action; None if it is not known.
    """
    cost = _without_limit(action, cost)
    expected = cost.mean(0)
    found = {"action": action, "expected_cost": expected, "value_of_information": expected}
    if least is not None:
        found["value_of_model_information"] = (expected - least.mean(0)).clamp_min(0)
    return found


def influence(
    mixture: NumberMixture, over: float, under: float, action: Float[Tensor, "rows"]
) -> dict[str, Tensor]:
    """What each sample adds to the costs of these actions."""
    cost = _without_limit(action, mixture.pinball(action, over, under))
    least = mixture.least_pinball(over, under)
    return {
        "expected_cost": cost,
        "value_of_information": cost,
        "value_of_model_information": cost - least,
    }


def _without_limit(action: Float[Tensor, "rows"], cost: PerSample) -> PerSample:
    """0 where the action is infinite: what lies on that side of it costs nothing."""
    return torch.where(action.isinf(), 0.0, cost)
