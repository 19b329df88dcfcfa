"""The training problem of series, which may be fitted twice.

The first fit does not see the steps that choose the epoch and those that calibrate. Its forecasts
of the latter are calibrated. The second fit learns from both, and keeps that calibration: the
latest steps, of which a short series has few, are not lost, and no residual is of a learned step.
The second fit has learned from more steps, so that its errors should be a little smaller.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from models.config import ForecastConfig, Json, ModelConfig, OutOfDistributionConfig
from models.evaluation.out_of_distribution import DEFAULT_SCORES, Detector
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.forecasting.backtest import Origin, find_origins, has_diverged, worth
from models.forecasting.classics.classics import Classics, log_scores, stack
from models.forecasting.features import fit_known
from models.forecasting.forecast import Forecast
from models.forecasting.holidays import Holidays
from models.forecasting.model import Forecaster
from models.forecasting.observation import Observation
from models.forecasting.panel import CutRows, Panel, Stacked, fit_frame
from models.forecasting.rollout import Split
from models.forecasting.scale_choice import observation_of, told
from models.forecasting.seen import SeenSeries
from models.forecasting.series import Series, split_series
from models.forecasting.sets import SetBounds, calibration_origins, divide
from models.forecasting.spacing import Spacing
from models.forecasting.windows import Frame
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions
from models.randomness import derive_seed
from models.tabular.problem import SCORE_SAMPLES, RowProblem
from models.training.card import RowProfile, summarise_columns
from models.training.distributed import ALONE, Ranks
from models.training.row_task import RowTask

_MOST_WEIGHING = 40  # forecasts that weigh the members
_SEASONS, _STEPS = 3, 8  # before the first of them, if a series has as many
_LEAST_SHARE = 0.02  # a share below it is not worth its paths


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
    kept = np.unique(
        np.linspace(0, len(found) - 1, min(_MOST_WEIGHING, len(found))).round().astype(int)
    )
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
    if share < _LEAST_SHARE:
        return None
    return replace(found, share=1.0 if share > 1 - _LEAST_SHARE else share)


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


@dataclass(frozen=True)
class Found:
    """What forecasts of the calibration steps told."""

    calibrations: Mapping[float, PathCalibration | None]
    classics: Classics | None


# Windows of an epoch. A panel of millions of windows, most of which overlap, is learned from a part
# of them; each epoch draws its own.
EPOCH_WINDOWS = 32_000


@dataclass(frozen=True)
class WindowProblem(RowProblem):
    """Windows of series, of which an epoch has a bounded number."""

    @property
    def task(self) -> RowTask:
        return RowTask(self.rows, self.ranks, most=EPOCH_WINDOWS)

    def finish(self, model: Any) -> Forecaster:
        """The model with metrics and detector of every variant, from back-tests of the held-out
        end of each series."""
        scored, notes = {}, list(model.notes)
        origins = model.held_out_origins(self.columns)
        for prune, variant in model.variants_by_prune.items():
            metrics = model.score_origins(origins, prune, SCORE_SAMPLES)
            detector = fit_detector(model, prune, origins, self)
            scored[prune] = replace(variant, metrics=metrics | variant.metrics, detector=detector)
            if has_diverged(scored[prune].metrics):
                notes.append(
                    f"prune {prune:g}: sample paths diverge; metrics that are not finite are null"
                )
        return replace(model, variants_by_prune=scored, notes=tuple(notes))

    def importance(self, model: Any) -> Json:
        return {}

    def held_out(self, model: Any) -> Json:
        return {}


def fit_detector(
    model: Forecaster, prune: float, held_out: Sequence[Origin], problem: WindowProblem
) -> Detector:
    """Fit the configured false-alarm rate to the steps of forecasts of the held-out end.

    They are made as those of requests are: a step reads the drawn values of the steps before.
    Forecasts overlap, so that all their steps together count as the held-out ones. These are
    few: no step is flagged that is no more unusual than a share of the wanted rate of the
    learned steps.
    """
    rate = (model.config.out_of_distribution or OutOfDistributionConfig()).false_alarm_rate
    usual = _ood_scores(model, held_out, prune)
    weights = np.full(len(usual), min(1.0, len(problem.scores) / len(usual)))
    found = Detector.fit(DEFAULT_SCORES[model.task], usual, rate, weights)
    learned = _ood_scores(model, _learned_origins(model, problem.columns), prune)
    least = np.quantile(learned[np.isfinite(learned)], 1 - rate) if len(learned) else 0.0
    return replace(found, threshold=max(found.threshold, float(least)))


def _ood_scores(model: Forecaster, chosen: Sequence[Origin], prune: float) -> np.ndarray:
    """The out-of-distribution score of each step of forecasts from these origins."""
    if not chosen:
        return np.array([])
    options = model.resolve(PredictOptions(samples=DEFAULT_SAMPLES, prune=prune))
    split = model.split(prune, options.samples)
    if not split.network:  # more samples have some draws of it
        split = Split.plan(options.samples, model.variant(prune).state.num_draws, 0.0)
    paths = model.network_paths(model.histories(chosen), options, split)
    return Forecast(split.repeated(paths)).ood_score().cpu().numpy()


def _learned_origins(model: Forecaster, columns: Columns) -> list[Origin]:
    """The origins of forecasts whose steps lie before the held-out end of each series."""
    series = split_series(columns, model.config.target, model.forecast, model.spacing)
    before = [one.until(divide(len(one), model.config).scores) for one in series]
    return find_origins(before, [model.frame.span] * len(before), model.frame.span, model.horizon)


@dataclass(frozen=True)
class SeriesProblem(WindowProblem):
    """Windows of the first fit, and the problem of the second one.

    Args:
        whole: learns up to the scored end; None without a refit.
        calibrating: origins of the forecasts that calibrate.
        earlier: origins of the forecasts that weigh classical members; empty without any.
        found: the calibration of each variant, and the classical members; None before `calibrate`.
    """

    whole: WindowProblem | None = None
    calibrating: tuple[Origin, ...] = ()
    earlier: tuple[Origin, ...] = ()
    found: Found | None = None

    def to(self, device: str) -> "SeriesProblem":
        moved = super().to(device)
        return replace(moved, whole=self.whole and self.whole.to(device))

    def refit(self) -> RowProblem:
        return super().refit() if self.whole is None else self.whole

    def calibrate(self, first: Callable[[], Any]) -> "SeriesProblem":
        """The problem with classical members and calibrations; itself without steps for these."""
        return replace(self, found=self._find(first())) if self.calibrating else self

    def finish(self, model: Any) -> Forecaster:
        """The calibrated model with metrics and detector of every variant."""
        model = model.with_unseen_series()
        found = self._find(model) if self.found is None else self.found
        notes = (*model.notes, *note_on(found.classics, self.calibrating))
        mixed = replace(model, classics=found.classics, notes=notes)
        return WindowProblem.finish(self.whole or self, mixed.with_calibrations(found.calibrations))

    def _find(self, model: Forecaster) -> Found:
        """The calibrations are of forecasts in which the classical members have their share."""
        classics = weigh(model, self.earlier, self.calibrating, SCORE_SAMPLES)
        mixed = replace(model, classics=classics)
        calibrations = {
            prune: mixed.calibrate(self.calibrating, prune, SCORE_SAMPLES)
            for prune in model.variants_by_prune
        }
        return Found(calibrations, classics)


_MOST_SCORED = 20_000  # windows that choose the epoch, and that are scored one step ahead


@dataclass(frozen=True)
class _Table:
    """A table's series and sets, from which a problem is made for each fit."""

    stacked: Stacked
    types: Mapping[str, str]
    config: ModelConfig
    sets: SetBounds
    spacing: Spacing
    observation: Observation
    notes: Sequence[str]
    columns: Columns  # the table itself, which the back-test reads
    ranks: Ranks
    holidays: Holidays | None

    def problem(self, ends: np.ndarray, stops: np.ndarray) -> WindowProblem:
        """The problem that learns each series up to its end.

        The steps from there to its stop choose the epoch. Scales and encoders are fitted to the
        learned steps.

        Raises:
            InvalidData: if no window is left to learn from.
        """
        config, stacked, sets = self.config, self.stacked, self.sets
        starts, never = np.zeros_like(ends), np.full_like(ends, stacked.begins[-1])
        learned = stacked.rows(stacked.between(starts, ends))
        encoder = fit_known(config, self.types, learned, self.spacing)
        frame = _frame(config, self.observation)
        panel = Panel.of(
            stacked, config, frame, encoder, spacing=self.spacing, holidays=self.holidays
        )
        whole = stacked.whole_windows(stacked.columns[config.target], frame.span)

        def at(firsts: np.ndarray, lasts: np.ndarray) -> Tensor:
            return torch.from_numpy(np.flatnonzero(whole & stacked.between(firsts, lasts)))

        train = at(starts, ends)
        if not len(train):
            raise InvalidData("no window without a missing value is left to learn from", "/dataset")
        frame = fit_frame(panel, frame, train)
        learning = CutRows.of(panel, frame, train)
        stopping = CutRows.of(panel, frame, at(ends, stops)).thinned(_MOST_SCORED)
        scores = CutRows.of(panel, frame, at(sets.scores, never)).thinned(_MOST_SCORED)
        profile = RowProfile(
            learned=len(learning),
            stopping=len(stopping),
            calibration=len(at(sets.calibration, sets.scores)),
            held_out=len(scores),
            columns=summarise_columns(learned, encoder, config.target, "number"),
            described=len(learned[config.target]),
        )
        held_out = stacked.rows(stacked.between(sets.scores, never))
        seen = SeenSeries.fit(config, self.types, learned, [held_out])
        model = _skeleton(config, encoder, frame, self.spacing, self.notes)
        model = replace(model, seen=seen, holidays=self.holidays)
        return WindowProblem(
            model,
            learning.held_if_small(),
            stopping if len(stopping) else None,
            None,
            scores,
            profile,
            self.columns,
            self.ranks,
        )


def prepare_series(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    ranks: Ranks = ALONE,
    *,
    holidays: Holidays | None = None,
) -> SeriesProblem:
    """Divide the series of a table into sets, cut them into windows, and encode them.

    Args:
        holidays: of the calendar that `forecast.holidays` names.

    Raises:
        InvalidData: if too little is left to learn from, or to score.
    """
    forecast = config.forecast or ForecastConfig()
    if (forecast.holidays is None) != (holidays is None):
        raise ValueError(
            f"forecast.holidays is {forecast.holidays!r}: give its days, and no others"
        )
    series = split_series(columns, config.target, forecast)
    sets = SetBounds.of(series, config)
    observation = observation_of(config, series)
    chosen = calibration_origins(series, config, _frame(config, observation).span)
    spacing = Spacing.fit([one.times for one in series], forecast.zone)
    notes = _notes(config, spacing, series, calibrates=bool(chosen)) + told(observation)
    stacked = Stacked.of(series)
    table = _Table(
        stacked, types, config, sets, spacing, observation, notes, columns, ranks, holidays
    )
    first = table.problem(sets.stopping, sets.calibration)
    assert isinstance(first.model, Forecaster)
    first.model.held_out_origins(columns)  # raises before a fit if there is none to score
    whole = table.problem(sets.scores, sets.scores) if config.training.refit else None
    own = {field.name: getattr(first, field.name) for field in fields(first)}
    own["profile"] = (whole or first).profile
    span = _frame(config, observation).span
    earlier = weighing_origins(series, sets, config, span) if forecast.classics else []
    return SeriesProblem(**own, whole=whole, calibrating=tuple(chosen), earlier=tuple(earlier))


def _frame(config: ModelConfig, observation: Observation) -> Frame:
    forecast = config.forecast or ForecastConfig()
    return Frame.of(forecast, observation)


def _skeleton(
    config: ModelConfig,
    encoder: FeatureEncoder,
    frame: Frame,
    spacing: Spacing,
    notes: Sequence[str],
) -> Forecaster:
    seed = derive_seed(config.training.seed, "prediction") % 2**31
    return Forecaster(
        config=config,
        encoder=encoder,
        target=frame.change,
        variants_by_prune={},
        default_seed=seed,
        notes=tuple(notes),
        frame=frame,
        spacing=spacing,
    )


def _notes(
    config: ModelConfig, spacing: Spacing, series: Sequence[Series], *, calibrates: bool
) -> list[str]:
    notes = []
    if not config.training.calibration_fraction:
        notes.append("not calibrated: no steps were set apart for it (calibration_fraction 0)")
    elif not calibrates:
        notes.append("not calibrated: too few whole forecasts lie in the steps set apart for it")
    return [*notes, *_notes_on_steps(spacing, series)]


def _notes_on_steps(spacing: Spacing, series: Sequence[Series]) -> list[str]:
    """What was done about uneven times and missing values."""
    notes = []
    gaps = sum(len(one) - 1 for one in series)
    if uneven := sum(_uneven(spacing, one) for one in series):
        notes.append(
            f"{uneven} of {gaps} gaps between times are not the usual one of "
            f"{spacing.describe()}: rows were taken as consecutive steps"
        )
    absent = sum(one.absent for one in series)
    missing = sum(int(np.isnan(one.values).sum()) for one in series) - absent
    filled = "windows read them filled in, and none learns to predict them"
    if spacing.unit == "weekday":
        notes.append(f"a step is {spacing.describe()}: other days count as no step")
    if absent:
        notes.append(f"{absent} steps have no row; they count as missing: {filled}")
    if missing:
        notes.append(f"{missing} steps have no target: {filled}")
    return notes


def _uneven(spacing: Spacing, one: Series) -> int:
    """How many gaps between rows are not one step."""
    return int((~spacing.is_whole(one.times) | (spacing.gaps(one.times) > 1)).sum())
