"""Risk–coverage curves: the risk of the answered rows for each share of answered rows.

Rows whose uncertainty is above a threshold are left to a human.
Source: Geifman and El-Yaniv 2017 (arXiv 1705.08500).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json

POINTS = 20  # of the curve: coverage in steps of 5 %


def selective_metrics(scores: dict[str, Float[Tensor, "rows"]]) -> Json:
    """`risk_coverage` and `aurc` of per-row scores; the risk is RMSE, or share of wrong labels."""
    if "correct" in scores:
        return risk_coverage(scores["uncertainty"], 1 - scores["correct"], lambda mean: mean)
    return risk_coverage(scores["uncertainty"], scores["squared_error"], torch.sqrt)


def risk_coverage(
    uncertainty: Float[Tensor, "rows"],
    loss: Float[Tensor, "rows"],
    to_risk: Callable[[Tensor], Tensor],
) -> Json:
    """The curve, and the area under it: the mean risk over all coverages k/n.

    A point answers the rows whose uncertainty is at most its threshold. Rows of equal uncertainty
    have no order, so each counts with their mean loss. If all uncertainties are equal, the area is
    therefore the risk of answering every row.

    Args:
        to_risk: computes the risk from a mean loss.
    """
    ordered, order = uncertainty.double().sort()
    _, group, sizes = ordered.unique_consecutive(return_inverse=True, return_counts=True)
    ends = sizes.cumsum(0) - 1
    sums = torch.zeros_like(sizes, dtype=torch.float64).index_add_(0, group, loss.double()[order])
    counts = torch.arange(1, len(ordered) + 1, dtype=torch.float64, device=ordered.device)
    risks = to_risk((sums / sizes)[group].cumsum(0) / counts)
    wanted = -(-len(ordered) * torch.arange(1, POINTS + 1, device=group.device) // POINTS)
    last = ends[group[wanted - 1].unique()]
    points = zip(ordered[last], (last + 1) / len(ordered), risks[last], strict=True)
    names = ("threshold", "coverage", "risk")
    curve = [dict(zip(names, map(float, point), strict=True)) for point in points]
    return {"risk_coverage": curve, "aurc": float(risks.mean())}
