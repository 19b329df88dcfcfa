"""Means and counts of rows with weights: a row of weight w counts as w rows.

Every function gives for whole weights what it gives for rows that are repeated, and for a row of
weight 0 what it gives without the row. Weights of None are 1 each.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Weights = Float[Tensor, "rows"]

WEIGHT = "weight"  # the entry of per-row scores that holds the rows' weights


def mean(values: Tensor, weights: Weights | None) -> float:
    """Σ w_i v_i / Σ w_i."""
    if weights is None:
        return float(values.mean())
    return float((values * weights).sum() / weights.sum())


def total(values: Tensor, weights: Weights | None) -> float:
    """Σ w_i: the number of rows that these rows count as."""
    return float(len(values)) if weights is None else float(weights.sum())


def split_weights(scores: dict[str, Tensor]) -> tuple[dict[str, Tensor], Weights | None]:
    """The scores of the rows with a weight above 0, without the weights, and these weights."""
    weights = scores.get(WEIGHT)
    if weights is None:
        return scores, None
    counts = weights > 0
    others = {name: values[counts] for name, values in scores.items() if name != WEIGHT}
    return others, weights[counts].double()


def bin_ends(weight: float, bins: int) -> Float[Tensor, "bins"]:
    """Cumulative weights at which nearly equal bins end, as `tensor_split` divides whole rows."""
    size, rest = divmod(weight, bins)
    place = torch.arange(1, bins + 1, dtype=torch.float64)
    return place * size + place.clamp(max=rest)


def shares(weights: Weights, ends: Float[Tensor, "bins"]) -> Float[Tensor, "bins rows"]:
    """The weight of each row in each bin; a row on an edge is divided between bins."""
    row_ends = weights.cumsum(0)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    lower = torch.maximum((row_ends - weights).unsqueeze(0), starts.unsqueeze(1))
    upper = torch.minimum(row_ends.unsqueeze(0), ends.unsqueeze(1))
    return (upper - lower).clamp(min=0)
