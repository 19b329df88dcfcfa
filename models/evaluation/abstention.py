"""What abstaining buys: the risk of the rows that are answered, by the share that is answered.

Rows whose uncertainty is above a threshold are left to a human. Source of curve and area: Geifman
and El-Yaniv 2017 (arXiv 1705.08500).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json

POINTS = 20  # of the curve: coverage in steps of 5 %


def selective_metrics(scores: dict[str, Float[Tensor, "rows"]]) -> Json:
    """`risk_coverage` and `aurc` of per-row scores: their RMSE, or their share of wrong labels."""
    if "correct" in scores:
        return risk_coverage(scores["uncertainty"], 1 - scores["correct"], lambda mean: mean)
    return risk_coverage(scores["uncertainty"], scores["squared_error"], torch.sqrt)


def risk_coverage(
    uncertainty: Float[Tensor, "rows"],
    loss: Float[Tensor, "rows"],
    to_risk: Callable[[Tensor], Tensor],
) -> Json:
    """The curve and the mean of its risk over all coverages k/n, the area under it.

    A point answers the rows whose uncertainty is at most its threshold. Rows of equal uncertainty
    have no order: each counts with the mean loss of them all, so that the area of an uncertainty
    that carries no information is the risk of answering every row.

    Args:
        to_risk: makes the risk of a mean loss.
    """
    ordered, order = uncertainty.double().sort()
    _, group, sizes = ordered.unique_consecutive(return_inverse=True, return_counts=True)
    ends = sizes.cumsum(0) - 1
    sums = torch.zeros_like(sizes, dtype=torch.float64).index_add_(0, group, loss.double()[order])
    risks = to_risk((sums / sizes)[group].cumsum(0) / _counts(ordered))
    wanted = -(-len(ordered) * torch.arange(1, POINTS + 1, device=group.device) // POINTS)
    last = ends[group[wanted - 1].unique()]
    points = zip(ordered[last], (last + 1) / len(ordered), risks[last], strict=True)
    names = ("threshold", "coverage", "risk")
    curve = [dict(zip(names, map(float, point), strict=True)) for point in points]
    return {"risk_coverage": curve, "aurc": float(risks.mean())}


def _counts(values: Tensor) -> Tensor:
    return torch.arange(1, len(values) + 1, dtype=torch.float64, device=values.device)
