"""The shares of series that are held out: for the epoch, for the calibration, for the scores."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from models.config import BBBConfig, ModelConfig, TrainingConfig
from models.evaluation.path_calibration import MIN_INDEPENDENT
from models.exceptions import InvalidData
from models.forecasting.series import Series
from models.forecasting.sets import calibration_origins, divide

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
