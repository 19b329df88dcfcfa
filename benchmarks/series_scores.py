"""Scores of forecasts, which need eleven quantiles of each step alone; and what peers forecast.

The CRPS is twice the mean pinball loss at `PROBABILITIES`, divided by the seasonal naive error: the
mean of |y_t − y_t−season| before the first origin.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from benchmarks.table_scores import LEVELS, PROBABILITIES

Json = dict[str, Any]
Quantiles = Float[np.ndarray, "steps quantiles"]
PEERS = ("AutoETS", "AutoARIMA", "AutoTheta", "SeasonalNaive")


def scores(truth: Float[np.ndarray, "steps"], quantiles: Quantiles, scale: float) -> Json:
    """Scaled CRPS, and the share of the steps inside the 90 % interval; quantiles are sorted."""
    ordered = np.sort(quantiles, axis=1)
    error = truth[:, None] - ordered
    crps = 2 * np.maximum(PROBABILITIES * error, (PROBABILITIES - 1) * error).mean()
    inside = (ordered[:, 0] <= truth) & (truth <= ordered[:, -1])
    return {
        "scaled_crps": round(float(crps / scale), 5),
        "cover90": round(float(inside.mean()), 4),
    }


def naive_error(past: Float[np.ndarray, "steps"], season: int) -> float:
    """The mean absolute change from the season before."""
    return float(np.abs(past[season:] - past[:-season]).mean())


def peer_quantiles(
    label: str, past: Float[np.ndarray, "steps"], season: int, horizon: int
) -> Quantiles:
    """Of a class of statsforecast, fitted to this past with its own settings."""
    from statsforecast import models  # noqa: PLC0415

    levels = [round(100 * level) for level in LEVELS]
    model = getattr(models, label)(season_length=season)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = model.forecast(y=past, h=horizon, level=levels)
    low = [found[f"lo-{level}"] for level in reversed(levels)]
    high = [found[f"hi-{level}"] for level in levels]
    return np.stack([*low, found["mean"], *high], axis=1)


def answer_quantiles(answer: Any) -> Quantiles:
    """Of a forecast with intervals of `LEVELS` (`models.prediction.prediction.RowPrediction`)."""
    ends = {round(one.level, 2): one for one in answer.intervals if one.kind == "credible"}
    low = [ends[level].lower for level in reversed(LEVELS)]
    return np.stack([*low, answer.median, *(ends[level].upper for level in LEVELS)], axis=1)


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
