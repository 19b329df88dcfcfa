"""Rolling-origin evaluation: forecasts from several past times, scored on the values that followed.

MASE is the mean absolute error divided by that of the seasonal naive forecast, which repeats the
last season, in the steps before (Hyndman and Koehler 2006). Below 1 is better than naive.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from models.config import Json
from models.evaluation.abstention import selective_metrics
from models.evaluation.metrics import regression_metrics, regression_scores
from models.evaluation.path_calibration import independent_errors
from models.exceptions import InvalidData
from models.forecasting.filling import fill, readable
from models.forecasting.forecast import Forecast
from models.forecasting.series import Series
from models.prediction.predictive import GaussianMixture

MAX_ORIGINS = 64
SOME_ORIGINS = 13  # a year of monthly ones, for methods that are fitted anew at each
MAX_STEPS = 2_000  # of all origins together: some 100 MB of paths

T = TypeVar("T")
Scores = dict[str, Tensor]
PerStep = Float64[Tensor, "steps"]


@dataclass(frozen=True)
class Origin:
    """The start of a forecast.

    Args:
        first: number of the step that is forecast first.
        scored: number of the first held-out step. The steps before give the scale of the errors.
    """

    series: Series
    first: int
    scored: int

    @property
    def past(self) -> Series:
        return self.series.until(self.first)

    def targets(self, horizon: int) -> np.ndarray:
        """The values of the steps that are forecast."""
        return self.series.values[self.first : self.first + horizon]


def origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int
) -> list[Origin]:
    """`find_origins` where there must be some.

    Raises:
        InvalidData: if there is none.
    """
    found = find_origins(series, scored, span, horizon)
    if not found:
        raise InvalidData(
            f"no series has {span} steps to read and {horizon} more, all known, to compare with",
            "/dataset",
        )
    return found


def find_origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int
) -> list[Origin]:
    """All origins with a readable past and a known future, thinned evenly to a bounded number.

    Args:
        scored: number of the first step of each series that may be forecast.
    """
    found = [
        Origin(one, first, max(start, span))
        for one, start in zip(series, scored, strict=True)
        for first in _firsts(one, max(start, span), span, horizon)
    ]
    most = max(1, min(MAX_ORIGINS, MAX_STEPS // horizon))
    kept = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int))
    return [found[i] for i in kept.tolist()]


def _firsts(one: Series, start: int, span: int, horizon: int) -> list[int]:
    """The steps from `start` on whose past can be read, and which begin `horizon` known ones."""
    if len(one) - horizon < start:
        return []
    known = np.concatenate([[0], np.cumsum(~np.isnan(one.values))])
    whole = known[horizon:] - known[:-horizon] == horizon  # from each step on
    firsts = np.arange(start, len(one) - horizon + 1)
    return firsts[whole[firsts] & readable(one.values, span)[firsts - span]].tolist()


def worth(chosen: Sequence[Origin], horizon: int) -> float:
    """The number of independent errors that those of the forecasts are worth."""
    _, series = np.unique([str(origin.series.key) for origin in chosen], return_inverse=True)
    return independent_errors(series, np.array([origin.first for origin in chosen]), horizon)


def some(chosen: Sequence[T]) -> list[T]:
    """Every n-th origin, or every n-th of one value per origin: at most `SOME_ORIGINS`."""
    return list(chosen[:: -(-len(chosen) // SOME_ORIGINS)])


def backtest(forecast: Forecast, chosen: Sequence[Origin], season: int, horizon: int) -> Json:
    """Metrics of the forecasts from all origins, and of the seasonal naive forecasts.

    With more than `SOME_ORIGINS` origins, `some_origins` has the same metrics at some of them, to
    compare with methods that are refitted at each origin.
    """
    targets = torch.from_numpy(np.concatenate([o.targets(horizon) for o in chosen]))
    own = forecast.scores(targets)
    naive = regression_scores(seasonal_naive(chosen, season, horizon), targets)
    metrics = _side_by_side(own, naive, chosen, season) | {"horizon": horizon}
    metrics |= _finite(selective_metrics(own))
    if len(chosen) <= SOME_ORIGINS:
        return metrics
    own, naive = (_at_some(scores, len(chosen)) for scores in (own, naive))
    return metrics | {"some_origins": _side_by_side(own, naive, some(chosen), season)}


def _side_by_side(own: Scores, naive: Scores, chosen: Sequence[Origin], season: int) -> Json:
    return {
        **summarise_scores(own, chosen, season),
        "origins": len(chosen),
        "independent_errors": worth(chosen, len(own["mae"]) // len(chosen)),
        "baselines": {"seasonal_naive": summarise_scores(naive, chosen, season)},
    }


def _at_some(scores: Scores, origins: int) -> Scores:
    """The scores at some of the origins, given those at all; the steps of each are consecutive."""
    step = torch.tensor(some(range(origins)))
    return {name: all_.unflatten(0, (origins, -1))[step].flatten() for name, all_ in scores.items()}


def summarise_scores(scores: Scores, chosen: Sequence[Origin], season: int) -> Json:
    """Means of the scores of all steps, and MASE. NaN and infinities become None.

    Args:
        scores: per step; the steps of each origin are consecutive.
    """
    scales = torch.tensor([naive_error(o, season) for o in chosen], dtype=torch.float64)
    errors = scores["mae"].cpu().unflatten(0, (len(chosen), -1)).mean(1)
    ratios = (errors / scales)[scales > 0]
    mase = float(ratios.mean()) if len(ratios) else None
    metrics = {**regression_metrics(scores), "mase": mase}
    del metrics["standard_errors"]  # steps of a forecast, and forecasts that overlap, are dependent
    return _finite(metrics)


def has_diverged(metrics: Json) -> bool:
    """Whether paths diverged: a score other than MASE is None.

    MASE is also None for a series that never changed before.
    """
    return any(value is None for name, value in metrics.items() if name != "mase")


def _finite(values: Mapping[str, Any]) -> Json:
    """The same values, nested or not, with None for NaN and infinities, which JSON cannot hold."""

    def finite(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _finite(value)
        if isinstance(value, list):
            return [finite(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: finite(value) for name, value in values.items()}


def naive_error(origin: Origin, season: int) -> float:
    """Mean absolute error of the seasonal naive forecast in the steps before the scored ones."""
    return float(np.nanmean(np.abs(_seasonal_changes(origin.series.until(origin.scored), season))))


def seasonal_naive(chosen: Sequence[Origin], season: int, horizon: int) -> GaussianMixture:
    """Forecasts that repeat the last season, with the variance of such forecasts' past errors.

    After k whole seasons the variance is k + 1 times as large, because the errors of seasons add up
    (Hyndman and Athanasopoulos 2021, §5.5).
    """
    steps = np.arange(horizon)
    means, variances = [], []
    for origin in chosen:
        last = fill(origin.past.values, season)[-season:]
        means.append(last[steps % season])
        changes = _seasonal_changes(origin.past, season)
        variances.append(np.nanmean(np.square(changes)) * (steps // season + 1))
    tensors = (torch.from_numpy(np.concatenate(part)) for part in (means, variances))
    mean, variance = (tensor.unsqueeze(0) for tensor in tensors)
    return GaussianMixture(mean, variance.clamp_min(torch.finfo(torch.float32).tiny))


def _seasonal_changes(series: Series, season: int) -> np.ndarray:
    return series.values[season:] - series.values[:-season]
