"""Risk–coverage curves: the risk of the answered rows for each share of answered rows.

Rows whose uncertainty is above a threshold are left to a human.
Source: Geifman and El-Yaniv 2017 (arXiv 1705.08500).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from models.config import Json
from models.evaluation.weighting import Weights, filled, split_weights

POINTS = 20  # of the curve: coverage in steps of 5 %
MOST_STEPS = 1_000_000  # of the area
_ROUNDING = 1e-12  # of a cumulative weight: it must not add a row to a point of the curve


def selective_metrics(scores: dict[str, Float[Tensor, "rows"]]) -> Json:
    """`risk_coverage` and `aurc` of per-row scores; the risk is RMSE, or share of wrong labels."""
    scores, weights = split_weights(scores)
    if "correct" in scores:
        loss = 1 - scores["correct"]
        return risk_coverage(scores["uncertainty"], loss, lambda mean: mean, weights)
    return risk_coverage(scores["uncertainty"], scores["squared_error"], torch.sqrt, weights)


def risk_coverage(
    uncertainty: Float[Tensor, "rows"],
    loss: Float[Tensor, "rows"],
    to_risk: Callable[[Tensor], Tensor],
    weights: Weights | None = None,
) -> Json:
    """The curve, and the area under it: the mean risk over all coverages k/n.

    A point answers the rows whose uncertainty is at most its threshold. Rows of equal uncertainty
    have no order: the cumulative loss is linear within them, and within a row that is answered in
    part. If all uncertainties are equal, the area is therefore the risk of answering every row. n
    is the total weight, or the number of rows if that is larger.

    Args:
        to_risk: computes the risk from a mean loss.
        weights: a row of weight w counts as w rows; none is 0.
    """
    each = filled(weights, loss)
    thresholds, group = uncertainty.double().unique(return_inverse=True)
    zero = torch.zeros_like(thresholds)
    counts = zero.index_add(0, group, each).cumsum(0)
    losses = zero.index_add(0, group, loss.double() * each).cumsum(0)
    steps = min(MOST_STEPS, max(round(float(counts[-1])), len(group)))
    answered = counts[-1] * torch.arange(1, steps + 1, device=counts.device) / steps
    risks = to_risk(_interpolate(answered, counts, losses) / answered)
    wanted = counts[-1] * torch.arange(1, POINTS + 1, device=counts.device) / POINTS
    last = torch.searchsorted(counts, wanted * (1 - _ROUNDING)).clamp(max=len(counts) - 1).unique()
    coverage, risk = counts[last] / counts[-1], to_risk(losses[last] / counts[last])
    names = ("threshold", "coverage", "risk")
    points = zip(thresholds[last], coverage, risk, strict=True)
    curve = [dict(zip(names, map(float, point), strict=True)) for point in points]
    return {"risk_coverage": curve, "aurc": float(risks.mean())}


def _interpolate(
    places: Float[Tensor, "places"], x: Float[Tensor, "knots"], y: Float[Tensor, "knots"]
) -> Float[Tensor, "places"]:
    """The line through (0, 0) and the knots, at these places."""
    x, y = pad(x, (1, 0)), pad(y, (1, 0))
    right = torch.searchsorted(x, places).clamp(1, len(x) - 1)
    slope = (y[right] - y[right - 1]) / (x[right] - x[right - 1])
    return y[right - 1] + slope * (places - x[right - 1])
