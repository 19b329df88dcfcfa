"""Scores of AutoETS, a classical method, on the held-out steps of a forecaster.

AutoETS selects a model of exponential smoothing by AICc (Hyndman and Khandakar 2008). It is fitted
again at each origin of the back-test, to the same history as the forecaster's.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, cast

import numpy as np
import structlog
import torch

from models.config import Json
from models.evaluation.metrics import regression_scores
from models.exceptions import Stopped
from models.features.columns import Columns
from models.forecasting.backtest import Origin, some, summarise_scores
from models.forecasting.filling import fill
from models.forecasting.model import Forecaster
from models.model import TrainedModel
from models.prediction.predictive import GaussianMixture
from worker.baselines.stopping import ShouldStop, check_stop

MAX_LENGTH = 500  # steps: a seasonal fit of 500 takes a second; the time grows in proportion
_LEVEL = 90  # %

log = structlog.get_logger()


def with_auto_ets(model: TrainedModel, columns: Columns, should_stop: ShouldStop) -> TrainedModel:
    """The forecaster, with the scores of AutoETS in the metrics of each variant.

    No scores are added if a series is longer than `MAX_LENGTH`, or AutoETS cannot be fitted.

    Raises:
        Stopped: `should_stop` returned True before the import or before a fit.
    """
    forecaster = cast(Forecaster, model)
    chosen = some(forecaster.held_out_origins(columns))
    if max(origin.first for origin in chosen) > MAX_LENGTH:
        return model
    season, horizon = forecaster.frame.season, int(forecaster.forecast.horizon or 1)
    try:
        scores = score("AutoETS", chosen, season, horizon, should_stop)
    except Stopped:
        raise
    except Exception:  # whatever statsforecast raises: the model itself is complete
        log.warning("AutoETS could not be fitted", exc_info=True)
        return model
    variants = {}
    for prune, variant in model.variants_by_prune.items():
        baselines = variant.metrics["baselines"] | {"auto_ets": scores}
        variants[prune] = replace(variant, metrics=variant.metrics | {"baselines": baselines})
    return model.with_variants(variants)


def score(
    name: str,
    chosen: Sequence[Origin],
    season: int,
    horizon: int,
    should_stop: ShouldStop = lambda: False,
) -> Json:
    """Scores of a model of statsforecast.

    Args:
        name: the class of the model, such as AutoETS.

    Raises:
        Stopped: `should_stop` returned True before the import or before a fit.
    """
    check_stop(should_stop)
    from statsforecast import models  # noqa: PLC0415

    model = getattr(models, name)(season_length=season)
    fits = []
    for origin in chosen:
        check_stop(should_stop)
        fits.append(_fit(model, origin, horizon))
    means, variances = zip(*fits, strict=True)
    mean, variance = (torch.from_numpy(np.concatenate(part)) for part in (means, variances))
    mixture = GaussianMixture(mean.unsqueeze(0), variance.unsqueeze(0))
    targets = torch.from_numpy(np.concatenate([o.targets(horizon) for o in chosen]))
    scores = regression_scores(mixture, targets)
    return {**summarise_scores(scores, chosen, season), "origins": len(chosen)}


def _fit(model: Any, origin: Origin, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the steps ahead."""
    values = fill(origin.past.values, model.season_length)
    found = model.forecast(y=values, h=horizon, level=[_LEVEL])
    half = 0.5 * (found[f"hi-{_LEVEL}"] - found[f"lo-{_LEVEL}"])
    scale = half / NormalDist().inv_cdf(0.5 + 0.005 * _LEVEL)
    least = np.finfo(np.float32).eps * (1 + np.abs(found["mean"]))
    return np.asarray(found["mean"], float), np.square(np.maximum(scale, least)).astype(float)
