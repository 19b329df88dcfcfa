"""Expected costs of actions, by the probabilities of classes.

An action a costs M[a, k] if the class is k. With probabilities p_s of sample s, and their mean p,
the best action has the cost min_a Σ_k M[a, k] p[k]; known classes would make it
Σ_k p[k] min_a M[a, k], and known weights the mean over s of min_a Σ_k M[a, k] p_s[k].
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.prediction.predictive import CategoricalMixture

Matrix = Float[Tensor, "actions classes"]


def decide(mixture: CategoricalMixture, matrix: Matrix) -> dict[str, Tensor]:
    """Index of the best action, the first of equal ones, and its costs."""
    probabilities = mixture.mean()
    expected, action = _first_least(probabilities @ matrix.T)
    informed = probabilities @ matrix.amin(0)
    known = _least(mixture, matrix).mean(0)
    return {
        "action": action,
        "expected_cost": expected,
        "value_of_information": (expected - informed).clamp_min(0),
        "value_of_model_information": (expected - known).clamp_min(0),
    }


def influence(
    mixture: CategoricalMixture, matrix: Matrix, action: Int[Tensor, "rows"]
) -> dict[str, Tensor]:
    """What each sample adds to the costs of these actions."""
    cost = (mixture.probs * matrix[action]).sum(-1)
    return {
        "expected_cost": cost,
        "value_of_information": cost - mixture.probs @ matrix.amin(0),
        "value_of_model_information": cost - _least(mixture, matrix),
    }


# Of equal costs that differ by rounding the first action counts as the best.
_ROUNDING = 1e-12


def _first_least(
    costs: Float[Tensor, "rows actions"],
) -> tuple[Float[Tensor, "rows"], Int[Tensor, "rows"]]:
    least = costs.amin(-1, keepdim=True)
    tolerance = _ROUNDING * costs.abs().amax(-1, keepdim=True)
    action = (costs <= least + tolerance).int().argmax(-1)
    return costs.gather(-1, action.unsqueeze(-1)).squeeze(-1), action


def _least(mixture: CategoricalMixture, matrix: Matrix) -> Float[Tensor, "samples rows"]:
    """The cost of each sample's best action; one action at a time, to save memory."""
    least = mixture.probs @ matrix[0]
    for costs in matrix[1:]:
        least = torch.minimum(least, mixture.probs @ costs)
    return least
