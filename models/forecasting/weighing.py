"""Fits the classical members, and finds what share of a forecast they should have."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from models.config import ModelConfig
from models.forecasting.backtest import Origin, find_origins, worth
from models.forecasting.classics.classics import Classics
from models.forecasting.classics.stacking import log_scores, stack
from models.forecasting.model import Forecaster
from models.forecasting.series import Series
from models.forecasting.sets import SetBounds
from models.prediction.options import PredictOptions

_MOST = 40  # forecasts that weigh the members
_SEASONS, _STEPS = 3, 8  # before the first of them, if a series has as many
_LEAST = 0.02  # a share below it is not worth its paths


def weighing_origins(
    series: Sequence[Series], sets: SetBounds, config: ModelConfig, span: int
) -> list[Origin]:
    """Origins in the second half of each series, before its scored end, thinned evenly.

    Half of the steps ahead must be known: of a series with gaps few stretches are whole.
    """
    assert config.forecast is not None
    season, horizon = config.forecast.longest_season, int(config.forecast.horizon or 1)
    before = [one.until(end) for one, end in zip(series, sets.scores.tolist(), strict=True)]
    firsts = [
        min(max(len(one) // 2, _SEASONS * season + _STEPS), max(span, len(one) - horizon))
        for one in before
    ]
    found = find_origins(before, firsts, span, horizon, least=-(-horizon // 2))
    kept = np.unique(np.linspace(0, len(found) - 1, min(_MOST, len(found))).round().astype(int))
    return [found[i] for i in kept.tolist()]


def weigh(
    model: Forecaster, earlier: Sequence[Origin], calibrating: Sequence[Origin], samples: int
) -> Classics | None:
    """The classical members, weighed by forecasts from earlier origins.

    Their share beside the network follows from the origins that calibrate, because the network has
    learned the steps before them. Without such origins nothing shows what the network's forecasts
    are worth: the classical members then forecast alone, but with covariates of the past, which
    only the network reads, the network does. None if no origin has a long enough past, or if the
    network forecasts alone.
    """
    if not earlier:
        return None
    known, targets = _known(model, earlier)
    share = float((~targets.isnan()).double().mean())
    seasons, independent = model.frame.seasons, share * worth(earlier, model.horizon)
    found = Classics.fit(known, targets, seasons, independent, model.regressors_at(earlier))
    if not calibrating:
        return None if model.forecast.past else found
    known, targets = _known(model, calibrating)
    regressors = None if found.effects is None else model.regressors_at(calibrating)
    alone = replace(model, classics=None)
    options = alone.resolve(PredictOptions(samples=samples))
    paths = alone.roll_out(alone.histories(calibrating), options).paths
    both = torch.stack(
        [
            found.log_scores(known, targets, regressors).flatten(),
            log_scores(paths, targets.to(model.device)).flatten().cpu(),
        ]
    )
    share = float(stack(both, worth(calibrating, model.horizon))[0])
    if share < _LEAST:
        return None
    return replace(found, share=1.0 if share > 1 - _LEAST else share)


def note_on(found: Classics | None, calibrating: Sequence[Origin]) -> tuple[str, ...]:
    """Says that the network has no part in forecasts, and why."""
    if found is None or found.share < 1:
        return ()
    why = "they forecast better" if calibrating else "no steps were left to weigh the network"
    return (f"forecasts are of classical members alone, with every pruned variant: {why}",)


def _known(
    model: Forecaster, origins: Sequence[Origin]
) -> tuple[Tensor, Float64[Tensor, "origins horizon"]]:
    """What is known at each origin, and the u that followed."""
    known = model.histories(origins).known
    assert known is not None
    targets = np.stack([origin.targets(model.horizon) for origin in origins])
    return known, torch.from_numpy(model.frame.transform(targets))
