"""Adds classical methods to a forecaster: their scores and its own at the same held-out origins."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import structlog

from core.exceptions import LostClaim
from models.config import Json
from models.exceptions import Stopped
from models.features.columns import Columns
from models.forecasting.backtest import Scores, beside, every, scores_alone, some
from models.forecasting.model import Forecaster
from models.forecasting.origins import Origin
from models.forecasting.windows import fill
from models.model import TrainedModel
from models.tabular.row_problem import SCORE_SAMPLES
from worker.baselines.classical import CLASSICS, LEAST, Classic, scores_of, stretch
from worker.baselines.stopping import ShouldStop

# Forecasts overlap: of 37 origins with 12 steps each, 7 are worth 10 errors and all of them 11.
PER_SERIES, MOST_SERIES = 7, 6

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
    chosen = at_origins(forecaster.held_out_origins(columns), forecaster.frame.season)
    own = forecaster.scores_at(chosen, 0.0, SCORE_SAMPLES) if chosen else {}
    found: Json = {}
    notes = []
    for classic in CLASSICS:
        some_of = chosen[:: classic.every]
        theirs, seconds = _fit(forecaster, classic, some_of, should_stop)
        if theirs is None:
            notes.append(f"no comparison with {classic.label}: it could not be fitted")
            continue
        ours = every(own, len(chosen), classic.every)
        compared = beside(ours, theirs, some_of, forecaster.frame.season)
        found[classic.name] = compared | {"seconds": seconds}
    model = _with_metrics(forecaster, found)
    notes += notes_on(model.variant(0.0).metrics["baselines"])
    return replace(model, notes=(*model.notes, *notes))


def _with_metrics(model: Forecaster, found: Json) -> Forecaster:
    """Every variant has the methods' scores; the full model also has its own beside them."""
    variants = {}
    for prune, variant in model.variants_by_prune.items():
        kept = found if prune == 0 else {name: scores_alone(one) for name, one in found.items()}
        baselines = variant.metrics["baselines"] | kept
        variants[prune] = replace(variant, metrics=variant.metrics | {"baselines": baselines})
    return model.with_variants(variants)


def at_origins(held_out: Sequence[Origin], season: int) -> list[Origin]:
    """The origins at which methods are fitted, evenly spread over series and time.

    Those with too little to read are left out.
    """
    usable = [o for o in held_out if len(stretch(fill(o.past.values, season), season)) >= LEAST]
    series = len({origin.series.key for origin in usable})
    return some(usable, PER_SERIES * min(series, MOST_SERIES)) if usable else []


def _fit(
    model: Forecaster, classic: Classic, chosen: Sequence[Origin], should_stop: ShouldStop
) -> tuple[Scores | None, float]:
    """The scores of a method, and the seconds that it took; no scores if it cannot be fitted."""
    started = time.perf_counter()
    if not chosen:
        return None, 0.0
    try:
        found = scores_of(classic.label, chosen, model.frame.season, model.horizon, should_stop)
    except (LostClaim, Stopped):
        raise
    except Exception:  # whatever statsforecast raises: the model itself is complete
        log.warning("a classical method could not be fitted", method=classic.label, exc_info=True)
        return None, 0.0
    return found, round(time.perf_counter() - started, 3)


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
