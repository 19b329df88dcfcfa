"""Rolling-origin evaluation: forecasts from several points of the past, scored on what came then.

MASE is the absolute error in units of what the seasonal naive forecast, which repeats the last
season, was off by in the steps before (Hyndman and Koehler 2006); below 1 is better than that.
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
from models.exceptions import InvalidData
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
    """Step number `first` of a series is the first one ahead; from `scored` on it is a test.

    What lies before `scored` gives the scale of the errors.
    """

    series: Series
    first: int
    scored: int

    @property
    def past(self) -> Series:
        return self.series.until(self.first)

    def targets(self, horizon: int) -> np.ndarray:
        """What came."""
        return self.series.values[self.first : self.first + horizon]


def origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int
) -> list[Origin]:
    """All origins with a whole past and future, thinned evenly to a bounded number.

    Raises:
        InvalidData: if there is none.
    """
    found = [
        Origin(one, first, max(start, span))
        for one, start in zip(series, scored, strict=True)
        for first in range(max(start, span), len(one) - horizon + 1)
        if not np.isnan(one.values[first - span : first + horizon]).any()
    ]
    if not found:
        raise InvalidData(
            f"no series has {span} steps to read and {horizon} more to compare with, none missing",
            "/dataset",
        )
    most = max(1, min(MAX_ORIGINS, MAX_STEPS // horizon))
    kept = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int))
    return [found[i] for i in kept.tolist()]


def some(chosen: Sequence[T]) -> list[T]:
    """Every n-th of the origins, or of what belongs to each: at most `SOME_ORIGINS`."""
    return list(chosen[:: -(-len(chosen) // SOME_ORIGINS)])


def backtest(forecast: Forecast, chosen: Sequence[Origin], season: int, horizon: int) -> Json:
    """Metrics of the forecasts of all origins, and of the seasonal naive beside them.

    Where there are more than `SOME_ORIGINS`, `some_origins` holds both again for those alone:
    a method that is fitted at these has to be compared with what the others score there.
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
        "baselines": {"seasonal_naive": summarise_scores(naive, chosen, season)},
    }


def _at_some(scores: Scores, origins: int) -> Scores:
    """The steps of these origins; those of one lie after those of the one before."""
    step = torch.tensor(some(range(origins)))
    return {name: all_.unflatten(0, (origins, -1))[step].flatten() for name, all_ in scores.items()}


def summarise_scores(scores: Scores, chosen: Sequence[Origin], season: int) -> Json:
    """Means of per-step scores, those of an origin after those of the one before; and MASE.

    A path that feeds on itself can leave the range of numbers: what is not finite then is None.
    """
    scales = torch.tensor([naive_error(o, season) for o in chosen], dtype=torch.float64)
    errors = scores["mae"].cpu().unflatten(0, (len(chosen), -1)).mean(1)
    ratios = (errors / scales)[scales > 0]
    mase = float(ratios.mean()) if len(ratios) else None
    return _finite({**regression_metrics(scores), "mase": mase})


def ran_away(metrics: Json) -> bool:
    """Whether a score is None; MASE is where nothing changed before, too."""
    return any(value is None for name, value in metrics.items() if name != "mase")


def _finite(values: Mapping[str, Any]) -> Json:
    """The same, nested or not, with None for what JSON has no number for."""

    def told(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _finite(value)
        if isinstance(value, list):
            return [told(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: told(value) for name, value in values.items()}


def naive_error(origin: Origin, season: int) -> float:
    """Mean absolute error of repeating the last season, before what is scored."""
    return float(np.nanmean(np.abs(_seasonal_changes(origin.series.until(origin.scored), season))))


def seasonal_naive(chosen: Sequence[Origin], season: int, horizon: int) -> GaussianMixture:
    """The last season again, with the errors that this had before.

    After k whole seasons the variance is k + 1 times as large: errors of each season add up
    (Hyndman and Athanasopoulos 2021, §5.5).
    """
    steps = np.arange(horizon)
    means, variances = [], []
    for origin in chosen:
        last = origin.past.values[-season:]
        means.append(last[steps % season])
        changes = _seasonal_changes(origin.past, season)
        variances.append(np.nanmean(np.square(changes)) * (steps // season + 1))
    tensors = (torch.from_numpy(np.concatenate(part)) for part in (means, variances))
    mean, variance = (tensor.unsqueeze(0) for tensor in tensors)
    return GaussianMixture(mean, variance.clamp_min(torch.finfo(torch.float32).tiny))


def _seasonal_changes(series: Series, season: int) -> np.ndarray:
    return series.values[season:] - series.values[:-season]
