"""The sets of a series, and the origins: the times from which forecasts are made in each set.

The sets follow each other in time: training, stopping, calibration, scores. A window belongs to the
set of the step that it predicts, a forecast to the set in which all of its steps lie. Both may read
steps of earlier sets, as they do when the model is used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from models.config import ModelConfig, TrainingConfig
from models.evaluation.path_calibration import MIN_INDEPENDENT
from models.exceptions import InvalidData
from models.features.columns import Columns, select_rows
from models.forecasting.series import Series
from models.forecasting.windows import readable
from models.forecasting.worth import Overlaps
from models.inference.registry import method_of


@dataclass(frozen=True)
class Origin:
    """The start of a forecast.

    Args:
        first: number of the step that is forecast first.
        scored: number of the first held-out step. The errors are scaled by the steps before it.
    """

    series: Series
    first: int
    scored: int

    @property
    def past(self) -> Series:
        return self.series.until(self.first)

    def ahead(self, horizon: int) -> Columns:
        """The columns of the steps that are forecast."""
        return select_rows(self.series.columns, slice(self.first, self.first + horizon))

    def targets(self, horizon: int) -> np.ndarray:
        """The values of the steps that are forecast."""
        return self.series.values[self.first : self.first + horizon]


MAX_ORIGINS = 64
MAX_STEPS = 2_000  # of all origins together: some 100 MB of paths


def origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int
) -> list[Origin]:
    """`find_origins` with all steps ahead known or, if there is none, at least half of them.

    Raises:
        InvalidData: if there is none either.
    """
    half = -(-horizon // 2)
    found = find_origins(series, scored, span, horizon)
    found = found or find_origins(series, scored, span, horizon, least=half)
    if not found:
        raise InvalidData(
            f"no series has {span} steps to read and {horizon} more to compare with, of which "
            f"{half} are known",
            "/dataset",
        )
    return found


def find_origins(
    series: Sequence[Series], scored: Sequence[int], span: int, horizon: int, *, least: int = 0
) -> list[Origin]:
    """The origins with a readable past and a known future, thinned evenly to a bounded number.

    Args:
        scored: number of the first step of each series that may be forecast.
        span: steps that are read before an origin.
        least: how many steps ahead must be known; 0 for all.
    """
    starts = [max(int(start), span) for start in scored]
    firsts = [
        _firsts(one, start, span, horizon, least or horizon)
        for one, start in zip(series, starts, strict=True)
    ]
    ends = np.cumsum([len(found) for found in firsts])
    most = max(1, min(MAX_ORIGINS, MAX_STEPS // horizon))
    chosen = []
    for i in _evenly(int(ends[-1]), most):
        n = int(np.searchsorted(ends, i, side="right"))
        first = int(firsts[n][i - ends[n]])  # counted from the end
        chosen.append(Origin(series[n], first, starts[n]))
    return chosen


def _firsts(one: Series, start: int, span: int, horizon: int, least: int) -> np.ndarray:
    """The origins from `start` on whose past can be read, and `least` steps ahead are known."""
    firsts = np.arange(start, len(one) - horizon + 1)
    if not len(firsts) or not np.isnan(one.values).any():
        return firsts
    known = np.concatenate([[0], np.cumsum(~np.isnan(one.values))])
    enough = known[firsts + horizon] - known[firsts] >= least
    return firsts[enough & readable(one.values, span)[firsts - span]]


def _evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers 0, …, count − 1, evenly spread."""
    places = np.linspace(0, count - 1, min(most, count)).round().astype(int)
    return [int(place) for place in np.unique(places)]


def overlaps_of(chosen: Sequence[Origin], horizon: int) -> Overlaps:
    """Which of the forecasts from these origins overlap."""
    keys = [str(origin.series.key) for origin in chosen]
    _, series = np.unique(np.array(keys), return_inverse=True)
    return Overlaps(series, np.array([origin.first for origin in chosen]), horizon)


# Sets


@dataclass(frozen=True)
class SeriesSets:
    """The first step of each set after the training steps; a set may be empty.

    Sets of a short series begin before its first step.

    Args:
        stopping: the first step that chooses the epoch.
        calibration: the first step of the forecasts that calibrate.
        scores: the first step that is scored.
    """

    stopping: Int64[np.ndarray, "series"]
    calibration: Int64[np.ndarray, "series"]
    scores: Int64[np.ndarray, "series"]

    @classmethod
    def of(cls, series: Sequence[Series], config: ModelConfig) -> "SeriesSets":
        """The sets of each series, by the shares of the training.

        The calibration and scores sets have at least a horizon, so that a forecast lies in each.
        """
        training, horizon = config.training, config.series.steps
        lengths = np.array([len(one) for one in series], dtype=np.int64)

        def steps(share: float | None, least: int) -> Int64[np.ndarray, "series"]:
            if not share:
                return np.zeros_like(lengths)
            return np.maximum(least, np.round(share * lengths).astype(np.int64))

        of_scores = np.round(training.validation_fraction * lengths).astype(np.int64)
        scores = lengths - np.maximum(horizon, of_scores)
        calibration = scores - steps(training.calibration_fraction, horizon)
        return cls(calibration - steps(training.stopping_fraction, 1), calibration, scores)


def before_scores(series: Sequence[Series], config: ModelConfig) -> list[Series]:
    """Each series up to the first step that is scored."""
    ends = SeriesSets.of(series, config).scores.tolist()
    return [one.until(end) for one, end in zip(series, ends, strict=True)]


def calibration_origins(series: Sequence[Series], config: ModelConfig, span: int) -> list[Origin]:
    """The origins of forecasts whose steps all lie in the calibration sets.

    Empty if their errors are worth fewer than `MIN_INDEPENDENT` independent ones.
    """
    if not config.training.calibration_fraction:
        return []
    firsts, horizon = SeriesSets.of(series, config).calibration.tolist(), config.series.steps
    found = find_origins(before_scores(series, config), firsts, span, horizon)
    is_enough = found and overlaps_of(found, horizon).worth().together >= MIN_INDEPENDENT
    return found if is_enough else []


_MOST_WEIGHING = 40  # forecasts that weigh the classical members
_SEASONS, _STEPS = 3, 8  # before the first of them, if a series has as many


def weighing_origins(series: Sequence[Series], config: ModelConfig, span: int) -> list[Origin]:
    """Origins in the second half of each series, before its scored end, thinned evenly.

    At least half of the steps ahead are known. In series with gaps, few stretches are completely
    known.
    """
    season, horizon = config.series.longest_season, config.series.steps
    before = before_scores(series, config)
    firsts = [
        min(max(len(one) // 2, _SEASONS * season + _STEPS), max(span, len(one) - horizon))
        for one in before
    ]
    found = find_origins(before, firsts, span, horizon, least=-(-horizon // 2))
    return [found[i] for i in _evenly(len(found), _MOST_WEIGHING)]


MIN_WINDOWS = 10
_REFIT_WINDOWS = 20_000  # below that, a second fit also learns from the two sets before the scores
_STOPPING = 0.1
_CALIBRATION, _CALIBRATION_ONCE = 0.2, 0.1  # with a refit no step is lost, and without
_LEAST_SHARE = 0.5  # of the windows before the scores: with fewer the first fit is another model


def choose_fractions(config: ModelConfig, series: Sequence[Series], span: int) -> TrainingConfig:
    """The training with both shares filled in.

    A share that is not given becomes 0 if the first fit would otherwise have fewer than
    `MIN_WINDOWS` windows, or less than half of those before the scores. So short series have no
    calibration, and the shortest no stopping set.

    Args:
        span: steps that are read before a predicted one.

    Raises:
        InvalidData: if given shares leave too little, for the fit or for a calibration.
    """
    given = config.training
    before = _count_windows(_with(config, 0.0, 0.0), series, span)
    once = before >= _REFIT_WINDOWS if given.refit is None else not given.refit
    *tried, last = _candidates(config, once=once)
    chosen = next(
        (
            one
            for one in tried
            if _count_windows(one, series, span) >= max(MIN_WINDOWS, _LEAST_SHARE * before)
            and (not one.training.calibration_fraction or calibration_origins(series, one, span))
        ),
        last,
    )
    left = _count_windows(chosen, series, span)
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
    return chosen.training


def _count_windows(config: ModelConfig, series: Sequence[Series], span: int) -> int:
    """The number of windows of the first fit."""
    return int((SeriesSets.of(series, config).stopping - span).clip(0).sum())


def _candidates(config: ModelConfig, *, once: bool) -> Iterator[ModelConfig]:
    """With both shares, without calibration, and without both. Given shares stay."""
    given = config.training
    runs_all_epochs = not method_of(config.method).is_stopped_early and given.patience is None
    usual = 0.0 if runs_all_epochs else _STOPPING, _CALIBRATION_ONCE if once else _CALIBRATION
    for stopping, calibration in (usual, (usual[0], 0.0), (0.0, 0.0)):
        shares = (
            stopping if given.stopping_fraction is None else given.stopping_fraction,
            calibration if given.calibration_fraction is None else given.calibration_fraction,
        )
        candidate = _with(config, *shares)
        yield replace(
            candidate, training=replace(candidate.training, refit=any(shares) and not once)
        )


def _with(config: ModelConfig, stopping: float, calibration: float) -> ModelConfig:
    training = replace(
        config.training, stopping_fraction=stopping, calibration_fraction=calibration
    )
    return replace(config, training=training)
