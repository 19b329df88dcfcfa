"""The dependence between series: which paths of one go with which of another.

Paths of several series are drawn with the same noise, or each for itself: their order says nothing.
For sums over series each path has a score: √ρ w + √(1 − ρ) e with a standard normal w that all
series share and e of its own, so that scores of two series have the correlation ρ. The paths of a
series are put in the order of these scores by their sums over the horizon, and stay whole.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64

from models.evaluation.calibration import PENALTY_SCALE
from models.forecasting.totals.coupling import Draws
from models.prediction.noise import standard_normal

_GRID = np.linspace(0.0, 0.95, 96)  # values of ρ that are compared


def pair(draws: Draws, rho: float, seed: int) -> Draws:
    """The same paths of each series in the order that makes sums of two go together by ρ."""
    paths, series, _ = draws.shape
    shared = standard_normal(seed, "all series", 0, paths, 1)
    own = torch.cat(
        [standard_normal(seed, f"series {k}", 0, paths, 1) for k in range(series)], dim=1
    )
    ranks = (math.sqrt(rho) * shared + math.sqrt(1 - rho) * own).argsort(0).argsort(0)
    by_sum = draws.sum(-1).argsort(0)
    chosen = by_sum.gather(0, ranks.to(draws.device))
    return draws.gather(0, chosen.unsqueeze(-1).expand_as(draws))


def fit_rho(
    errors: Float64[np.ndarray, "forecasts"], times: Sequence[object], worth: float
) -> float:
    """The most probable ρ of errors of forecasts that begin at these times, if they are Gaussian.

    Those of one time are exchangeable: with m of them, 1 + (m − 1) ρ is the variance of √m times
    their mean, and 1 − ρ that of the rest, in units of their variance. The prior of ρ is
    N(0, ½²) above 0. Errors of other times are taken as independent, and count by `worth`.

    Args:
        errors: in predicted deviations.
        worth: the number of independent errors that one error is worth, from 0 to 1.
    """
    known = np.isfinite(errors)
    errors, at = errors[known], np.asarray([str(one) for one in times])[known]
    size = float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else 0.0
    if not size:
        return 0.0
    loss = 0.5 * np.square(_GRID / PENALTY_SCALE)
    for time in np.unique(at):
        group = errors[at == time] / size
        mean, m = group.mean(), len(group)
        together, apart = 1 + (m - 1) * _GRID, 1 - _GRID
        rest = float(np.square(group - mean).sum())
        logs = np.log(together) + (m - 1) * np.log(apart)
        loss = loss + 0.5 * worth * (logs + m * mean**2 / together + rest / apart)
    return float(_GRID[loss.argmin()])
