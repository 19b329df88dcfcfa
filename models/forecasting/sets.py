"""The sets of a series, in the order of time: training, stopping, calibration, scores.

Each set has its own steps as targets. Windows and forecasts read steps of the sets before, as they
do when the model is used. A forecast belongs to the set in which all of its steps lie.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from models.config import BBBConfig, ForecastConfig, ModelConfig, TrainingConfig
from models.evaluation.path_calibration import MIN_INDEPENDENT
from models.exceptions import InvalidData
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


MIN_WINDOWS = 10
_REFIT_WINDOWS = 20_000  # below that, a second fit also learns from the two sets before the scores
_STOPPING = 0.1
_CALIBRATION, _CALIBRATION_ONCE = 0.2, 0.1  # with a refit no step is lost, and without
_LEAST_SHARE = 0.5  # of the windows before the scores: with fewer the first fit is another model


def choose_fractions(config: ModelConfig, series: Sequence[Series], span: int) -> TrainingConfig:
    """The training with both shares. Short series have no calibration, the shortest no stopping.

    A share that is not given is left out if the first fit would have fewer than `MIN_WINDOWS`
    windows, or less than half of those before the scores.

    Args:
        span: steps that are read before a predicted one.

    Raises:
        InvalidData: if given shares leave too little, for the fit or for a calibration.
    """
    before = count_windows(_with(config, 0.0, 0.0), series, span)
    least = max(MIN_WINDOWS, _LEAST_SHARE * before)
    once = before >= _REFIT_WINDOWS if config.training.refit is None else not config.training.refit
    tried = list(_candidates(config, once=once))
    for one in tried[:-1]:
        calibrates = not one.training.calibration_fraction or calibration_origins(series, one, span)
        if calibrates and count_windows(one, series, span) >= least:
            break
    else:
        one = tried[-1]
    _check(one, config.training, series, span)
    return one.training


def count_windows(config: ModelConfig, series: Sequence[Series], span: int) -> int:
    """Windows of the first fit."""
    return sum(max(0, divide(len(one), config).stopping - span) for one in series)


def _candidates(config: ModelConfig, *, once: bool) -> Iterator[ModelConfig]:
    """With both shares, without calibration, and without both; given ones stay."""
    given = config.training
    runs_all_epochs = isinstance(config.method, BBBConfig) and given.patience is None
    usual = 0.0 if runs_all_epochs else _STOPPING, _CALIBRATION_ONCE if once else _CALIBRATION
    for stopping, calibration in (usual, (usual[0], 0.0), (0.0, 0.0)):
        shares = (
            stopping if given.stopping_fraction is None else given.stopping_fraction,
            calibration if given.calibration_fraction is None else given.calibration_fraction,
        )
        found = _with(config, *shares)
        yield replace(found, training=replace(found.training, refit=any(shares) and not once))


def _with(config: ModelConfig, stopping: float, calibration: float) -> ModelConfig:
    training = replace(
        config.training, stopping_fraction=stopping, calibration_fraction=calibration
    )
    return replace(config, training=training)


def _check(chosen: ModelConfig, given: TrainingConfig, series: Sequence[Series], span: int) -> None:
    """Refuse given shares that leave too few windows or forecasts, and a refit without shares."""
    left = count_windows(chosen, series, span)
    for name in ("calibration_fraction", "stopping_fraction"):
        if (share := getattr(given, name)) and left < MIN_WINDOWS:
            raise InvalidData(
                f"{name} {share:g} leaves {left} windows of {span} + 1 steps to the first fit; "
                f"at least {MIN_WINDOWS} are needed: lower it, or give 0",
                f"/training/{name}",
            )
    if given.calibration_fraction and not calibration_origins(series, chosen, span):
        raise InvalidData(
            f"calibration_fraction {given.calibration_fraction:g} leaves too few forecasts: their "
            f"errors must be worth {MIN_INDEPENDENT} independent ones. Raise it, shorten "
            "forecast.horizon, give more or longer series, or leave it out",
            "/training/calibration_fraction",
        )
    if given.refit and not chosen.training.refit:
        raise InvalidData(
            "no steps choose the epoch or calibrate, and a refit would be the same fit: leave it "
            "out, or give stopping_fraction",
            "/training/refit",
        )
