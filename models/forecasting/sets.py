"""The sets of a series, in the order of time: training, stopping, calibration, scores.

Each set has its own steps as targets. Windows and forecasts read steps of the sets before, as they
do when the model is used. A forecast belongs to the set in which all of its steps lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from models.config import ForecastConfig, ModelConfig
from models.evaluation.path_calibration import MIN_INDEPENDENT
from models.forecasting.backtest import Origin, find_origins, worth
from models.forecasting.series import Series


@dataclass(frozen=True)
class SeriesSets:
    """The first step of each set after the training steps; a set may be empty.

    Args:
        stopping: the first step that chooses the epoch.
        calibration: the first step of the forecasts that calibrate.
        scores: the first step that is scored.
    """

    stopping: int
    calibration: int
    scores: int


def divide(length: int, config: ModelConfig) -> SeriesSets:
    """Sets of a series of so many steps. Those of a short series begin before its first step.

    Scores and calibration have a horizon at least, so that one forecast lies in each.
    """
    forecast, training = config.forecast or ForecastConfig(), config.training
    horizon = int(forecast.horizon or 1)
    calibrating, stopping = training.calibration_fraction or 0.0, training.stopping_fraction or 0.0
    scores = length - max(horizon, round(training.validation_fraction * length))
    calibration = scores - (max(horizon, round(calibrating * length)) if calibrating else 0)
    first = calibration - (max(1, round(stopping * length)) if stopping else 0)
    return SeriesSets(first, calibration, scores)


@dataclass(frozen=True)
class SetBounds:
    """The sets of several series: an array in place of each number of `SeriesSets`."""

    stopping: Int64[np.ndarray, "series"]
    calibration: Int64[np.ndarray, "series"]
    scores: Int64[np.ndarray, "series"]

    @classmethod
    def of(cls, series: Sequence[Series], config: ModelConfig) -> "SetBounds":
        found = [divide(len(one), config) for one in series]
        each = [(sets.stopping, sets.calibration, sets.scores) for sets in found]
        return cls(*np.array(each, dtype=np.int64).T)


def calibration_origins(series: Sequence[Series], config: ModelConfig, span: int) -> list[Origin]:
    """The origins of forecasts whose steps all lie in the calibration sets.

    None if their errors are worth fewer than `MIN_INDEPENDENT` independent ones.
    """
    if not config.training.calibration_fraction:
        return []
    horizon = int((config.forecast or ForecastConfig()).horizon or 1)
    sets = [divide(len(one), config) for one in series]
    before = [one.until(of.scores) for one, of in zip(series, sets, strict=True)]
    found = find_origins(before, [of.calibration for of in sets], span, horizon)
    return found if found and worth(found, horizon) >= MIN_INDEPENDENT else []
