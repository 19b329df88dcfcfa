"""Adds classical methods to a forecaster: their scores and its own at the same held-out origins."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import structlog

from models.config import Json
from models.exceptions import Stopped
from models.features.columns import Columns
from models.forecasting.backtest import Origin, Scores, beside, some
from models.forecasting.filling import fill
from models.forecasting.model import Forecaster
from models.model import TrainedModel
from models.tabular.problem import SCORE_SAMPLES
from worker.baselines.classical import CLASSICS, LEAST, Classic, scores_of, stretch
from worker.baselines.stopping import ShouldStop

SEVERAL = 3  # times as many origins of several series

log = structlog.get_logger()


def with_series_baselines(
    model: TrainedModel, columns: Columns, should_stop: ShouldStop
) -> TrainedModel:
    """The forecaster with classical methods among the metrics of each variant, and notes.

    A note names each method that forecast better, and each that could not be fitted.

    Raises:
        Stopped: `should_stop` returned True before the import or before a fit.
    """
    forecaster = cast(Forecaster, model)
    held_out = forecaster.held_out_origins(columns)
    own: dict[int, dict[float, Scores]] = {}  # by the number of origins, of each variant
    metrics = {prune: one.metrics for prune, one in forecaster.variants_by_prune.items()}
    notes = []
    for classic in CLASSICS:
        chosen = at_origins(held_out, classic, forecaster.frame.season)
        theirs, seconds = _fit(forecaster, classic, chosen, should_stop)
        if theirs is None:
            notes.append(f"no comparison with {classic.label}: it could not be fitted")
            continue
        if len(chosen) not in own:
            own[len(chosen)] = _own(forecaster, chosen)
        for prune, scores in own[len(chosen)].items():
            found = beside(scores, theirs, chosen, forecaster.frame.season) | {"seconds": seconds}
            baselines = metrics[prune]["baselines"] | {classic.name: found}
            metrics[prune] = metrics[prune] | {"baselines": baselines}
    notes += notes_on(metrics[0.0]["baselines"])
    variants = {
        prune: replace(one, metrics=metrics[prune])
        for prune, one in forecaster.variants_by_prune.items()
    }
    return replace(forecaster.with_variants(variants), notes=(*model.notes, *notes))


def at_origins(held_out: Sequence[Origin], classic: Classic, season: int) -> list[Origin]:
    """The origins at which a method is fitted, evenly spread over series and time.

    Those with too little to read are left out.
    """
    usable = [o for o in held_out if len(stretch(fill(o.past.values, season), season)) >= LEAST]
    several = len({origin.series.key for origin in usable}) > 1
    return some(usable, classic.origins * (SEVERAL if several else 1)) if usable else []


def _fit(
    model: Forecaster, classic: Classic, chosen: Sequence[Origin], should_stop: ShouldStop
) -> tuple[Scores | None, float]:
    """The scores of a method, and the seconds that it took; no scores if it cannot be fitted."""
    started = time.perf_counter()
    if not chosen:
        return None, 0.0
    try:
        found = scores_of(classic.label, chosen, model.frame.season, model.horizon, should_stop)
    except Stopped:
        raise
    except Exception:  # whatever statsforecast raises: the model itself is complete
        log.warning("a classical method could not be fitted", method=classic.label, exc_info=True)
        return None, 0.0
    return found, round(time.perf_counter() - started, 3)


def _own(model: Forecaster, chosen: Sequence[Origin]) -> dict[float, Scores]:
    """The scores of every variant."""
    return {
        prune: model.scores_at(chosen, prune, SCORE_SAMPLES) for prune in model.variants_by_prune
    }


def notes_on(baselines: Json) -> list[str]:
    """A note on each method that forecast better than the full model, beyond chance."""
    names = {"seasonal_naive": "the seasonal naive forecast"}
    names |= {classic.name: classic.label for classic in CLASSICS}
    return [
        f"{names[name]} forecast the held-out steps better than this model: its CRPS is lower by "
        f"{-one['advantage']:.2g} (standard error {one['advantage_error']:.2g}, "
        f"{one['origins']} origins)"
        for name, one in baselines.items()
        if one.get("verdict") == "worse"
    ]
