"""Risk–coverage curves: the risk of the answered rows for each share of answered rows.

Rows whose uncertainty is above a threshold are left to a human.
Source: Geifman and El-Yaniv 2017 (arXiv 1705.08500).
"""

from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor

from models.config import Json
from models.evaluation.weighting import PerRow, Weights, split_weights

POINTS = 20  # of the curve: coverage in steps of 5 %
MOST_STEPS = 1_000_000  # of the area
_ROUNDING = 1e-12  # of a cumulative weight: it must not add a row to a point of the curve


def selective_metrics(scores: Mapping[str, Tensor]) -> Json:
    """`risk_coverage` and `aurc` of per-row scores; the risk is RMSE, or share of wrong labels."""
    rows, weights = split_weights(scores)
    if "correct" in rows:
        return risk_coverage(rows["uncertainty"], 1 - rows["correct"], np.array, weights)
    return risk_coverage(rows["uncertainty"], rows["squared_error"], np.sqrt, weights)


def risk_coverage(
    uncertainty: PerRow, loss: PerRow, to_risk: Callable[[np.ndarray], np.ndarray], weights: Weights
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
    each = weights.numpy()
    values = uncertainty.double().numpy()
    thresholds, group = np.unique(values, return_inverse=True, equal_nan=False)
    counts = np.bincount(group, each).cumsum()
    losses = np.bincount(group, loss.double().numpy() * each).cumsum()
    steps = min(MOST_STEPS, max(round(float(counts[-1])), len(loss)))
    answered = counts[-1] * np.arange(1, steps + 1) / steps
    risks = to_risk(np.interp(answered, np.append(0.0, counts), np.append(0.0, losses)) / answered)
    wanted = counts[-1] * np.arange(1, POINTS + 1) / POINTS
    last = np.unique(np.searchsorted(counts, wanted * (1 - _ROUNDING)).clip(max=len(counts) - 1))
    points = {
        "threshold": thresholds[last],
        "coverage": counts[last] / counts[-1],
        "risk": to_risk(losses[last] / counts[last]),
    }
    columns = zip(*(values.tolist() for values in points.values()), strict=True)
    curve = [dict(zip(points, point, strict=True)) for point in columns]
    return {"risk_coverage": curve, "aurc": float(risks.mean())}
