r"""Weights of members by the log score of their forecasts from earlier origins.

The weights w maximise, for the forecasts of N steps that are worth n independent ones,

    (n/N) Σ_i log Σ_k w_k p_k(y_i)  +  Σ_k (1/K) log w_k

(stacking of predictive distributions: Yao et al. 2018, Bayesian Analysis 13(3), with a Dirichlet
prior that is worth one observation). It is concave, and solved by expectation maximisation.
"""

import math

import torch
from jaxtyping import Float64
from torch import Tensor

from models.forecasting.rollout import Paths

_ROUNDS = 1_000
_FLOOR = -1e4  # nats: a forecast that is not finite


def log_scores(
    paths: Paths, targets: Float64[Tensor, "rows horizon"]
) -> Float64[Tensor, "rows horizon"]:
    """Log density of each value of u under the mixture of all paths; NaN where it is missing."""
    means, variances = paths.means.flatten(0, 1), paths.variances.flatten(0, 1)
    density = -0.5 * ((targets - means).square() / variances + (2 * torch.pi * variances).log())
    found = density.logsumexp(0) - math.log(len(means))
    return found.nan_to_num(_FLOOR, _FLOOR, _FLOOR).where(~targets.isnan(), torch.nan)


def stack(
    scores: Float64[Tensor, "members values"], independent: float
) -> Float64[Tensor, "members"]:
    """The weights, which sum to 1.

    Args:
        independent: n.
    """
    scores = scores[:, ~scores.isnan().any(0)]
    count = len(scores)
    weights = torch.full((count,), 1 / count, dtype=torch.float64)
    worth = independent / max(1, scores.shape[1])
    for _ in range(_ROUNDS):
        shares = (scores + weights.log().unsqueeze(1)).softmax(0)
        found = worth * shares.sum(1) + 1 / count
        found = found / found.sum()
        if bool((found - weights).abs().max() < 1e-9):
            break
        weights = found
    return weights


def mixed(
    scores: Float64[Tensor, "members values"], weights: Float64[Tensor, "members"]
) -> Float64[Tensor, "values"]:
    """The log density of each value under the weighted mixture."""
    return (scores + weights.log().unsqueeze(1)).logsumexp(0)
