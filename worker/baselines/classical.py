"""Forecasts of classical methods (statsforecast), each fitted anew at every origin.

AutoETS and AutoARIMA select a model by AICc (Hyndman and Khandakar 2008), AutoTheta one of the
Theta methods (Fiorucci et al. 2016). They read the last `STRETCH` steps, or `SEASONS` seasons where
these are longer. AutoARIMA searches seasonal and long series by conditional sums of squares, as
R's `auto.arima` does: three to seven times faster. Seasons of more than `LONGEST` steps are first
taken out by STL (Cleveland et al. 1990), as R's `stlf` does: the states of longer ones are not
fitted in seconds.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64

from models.evaluation.metrics import regression_scores
from models.forecasting.backtest import Scores, with_stand_ins, without
from models.forecasting.origins import Origin
from models.forecasting.windows import fill
from models.likelihoods.number_mixture import NumberMixture
from worker.baselines.stopping import ShouldStop, check_stop

STRETCH, SEASONS = 500, 4  # steps, and seasons of a longer stretch
LONGEST = 24  # steps of a season that a model has a state for
LONG = 150  # steps, from which AutoARIMA's search is approximate
LEAST = 10  # steps: AICc of a seasonless exponential smoothing is finite
_LEVEL = 90  # %


@dataclass(frozen=True)
class Classic:
    """A method of statsforecast.

    Args:
        name: among a version's baselines.
        label: the name of its class.
        every: it is fitted at every n-th of the origins where others are. A fit of a monthly series
            takes 0.1 to 0.3 s, 0.02 s and 0.1 to 0.8 s.
    """

    name: str
    label: str
    every: int


CLASSICS = (
    Classic("auto_ets", "AutoETS", 1),
    Classic("auto_theta", "AutoTheta", 1),
    Classic("auto_arima", "AutoARIMA", 2),
)


def scores_of(
    label: str,
    chosen: Sequence[Origin],
    season: int,
    horizon: int,
    should_stop: ShouldStop = lambda: False,
) -> Scores:
    """The scores of each step of the forecasts of a class of statsforecast.

    Raises:
        Stopped: `should_stop` returned True before the import or before a fit.
        Exception: whatever statsforecast raises for a series that it cannot fit.
    """
    check_stop(should_stop)
    with _quietly():
        fits = [_fit(label, origin, season, horizon, should_stop) for origin in chosen]
    means, variances = (np.concatenate(part) for part in zip(*fits, strict=True))
    mean, variance = (torch.from_numpy(part).unsqueeze(0) for part in (means, variances))
    targets = np.stack([origin.targets(horizon) for origin in chosen])
    forecasts = NumberMixture.gaussian(mean, variance)
    return without(regression_scores(forecasts, with_stand_ins(targets)), targets)


def _fit(
    label: str, origin: Origin, season: int, horizon: int, should_stop: ShouldStop
) -> tuple[Float64[np.ndarray, "horizon"], Float64[np.ndarray, "horizon"]]:
    """Means and variances of the steps ahead, from half the width of the 90 % intervals.

    The method reads values of size 1: some of its tolerances are absolute.
    """
    check_stop(should_stop)
    known = stretch(fill(origin.past.values, season), season)
    unit = float(np.abs(known).max(initial=0.0)) or 1.0
    found = _model(label, season, len(known)).forecast(y=known / unit, h=horizon, level=[_LEVEL])
    mean, low, high = (
        np.asarray(found[name], float) for name in ("mean", f"lo-{_LEVEL}", f"hi-{_LEVEL}")
    )
    deviation = 0.5 * (high - low) / NormalDist().inv_cdf(0.5 + 0.005 * _LEVEL)
    least = np.finfo(np.float32).eps * (1 + np.abs(mean))
    return unit * mean, np.square(unit * np.maximum(deviation, least))


def stretch(values: Float64[np.ndarray, "steps"], season: int) -> Float64[np.ndarray, "recent"]:
    """The steps that a method reads: the recent ones, after the last missing value."""
    recent = values[-max(STRETCH, SEASONS * season) :]
    missing = np.flatnonzero(np.isnan(recent))
    return recent[missing[-1] + 1 :] if len(missing) else recent


def _model(label: str, season: int, steps: int) -> Any:
    from statsforecast import models  # noqa: PLC0415

    season = season if steps >= 2 * season else 1  # a seasonal fit needs two seasons
    is_long = season > LONGEST
    options: dict[str, Any] = {}
    if label == "AutoARIMA":
        options["approximation"] = season > 1 or steps > LONG
    if label == "AutoETS" and is_long:
        options["model"] = "ZZN"
    if not is_long or label == "AutoTheta":  # which takes a mean season out itself
        return getattr(models, label)(season_length=season, **options)
    return models.MSTL(season_length=season, trend_forecaster=getattr(models, label)(**options))


@contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
