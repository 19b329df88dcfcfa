"""The training problem of series. It may be fitted twice.

The first fit does not learn from the steps that choose the epoch and those that calibrate. Its
forecasts of the latter are calibrated. The second fit learns from both, and keeps that calibration.
So the latest steps, of which a short series has few, are not lost, and no calibration residual is
of a learned step. The second fit has learned from more steps: its errors should be a little
smaller.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from models.card import RowProfile, summarise_columns
from models.config import ModelConfig
from models.evaluation.detector import DEFAULT_SCORES, Detector
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.rows import Rows
from models.fitting.distributed import ALONE, Ranks
from models.fitting.row_task import RowTask
from models.forecasting.backtest import has_diverged
from models.forecasting.classics.classics import Classics, log_scores, stack
from models.forecasting.forecast import Forecast
from models.forecasting.histories import History
from models.forecasting.holidays import Holidays
from models.forecasting.identity import with_unseen
from models.forecasting.model import Forecaster
from models.forecasting.observation import Observation
from models.forecasting.origins import (
    Origin,
    SeriesSets,
    before_scores,
    calibration_origins,
    find_origins,
    overlaps_of,
    weighing_origins,
)
from models.forecasting.panel import Covariates, CutRows, Panel, Stacked, fit_encoders, fit_frame
from models.forecasting.rollout import Split
from models.forecasting.scale_choice import observation_of, told
from models.forecasting.series import Series, split_series
from models.forecasting.steps import Spacing
from models.forecasting.unusual import SeenSeries
from models.forecasting.windows import Frame
from models.forecasting.worth import sums_of_walks
from models.inference.method import State
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions
from models.randomness import derive_seed
from models.tabular.row_problem import SCORE_SAMPLES, log_density, watched

# Windows of an epoch. A panel of millions of windows, most of which overlap, is learned from a part
# of them; each epoch draws its own.
EPOCH_WINDOWS = 32_000


@dataclass(frozen=True)
class FirstFit:
    """What the first fit's forecasts of the calibration steps determine.

    Args:
        calibrations: of the forecasts of each variant, mixed with the classical members.
    """

    calibrations: Mapping[float, PathCalibration | None]
    classics: Classics | None


@dataclass(frozen=True)
class SeriesProblem:
    """A forecaster without posteriors, the windows it learns from and those held out.

    Args:
        stopping: windows that choose the epoch; None if there are none.
        scores: windows of the held-out end, for the learning curve.
        columns: the table.
        whole: the problem of the second fit, which learns up to the scored end; None without one.
        calibrating: origins of the forecasts that calibrate.
        earlier: origins of the forecasts that weigh classical members; empty without any.
        found: what the first fit found; None before `calibrate`.
    """

    model: Forecaster
    rows: Rows
    stopping: Rows | None
    scores: Rows
    profile: RowProfile
    columns: Columns
    ranks: Ranks = ALONE
    whole: "SeriesProblem | None" = None
    calibrating: tuple[Origin, ...] = ()
    earlier: tuple[Origin, ...] = ()
    found: FirstFit | None = None

    def to(self, device: str) -> "SeriesProblem":
        """The same problem with all windows on a device."""
        return replace(
            self,
            rows=self.rows.to(device),
            stopping=self.stopping and self.stopping.to(device),
            scores=self.scores.to(device),
            whole=self.whole and self.whole.to(device),
        )

    @property
    def task(self) -> RowTask:
        return RowTask(self.rows, self.ranks, most=EPOCH_WINDOWS)

    @property
    def chooses(self) -> bool:
        return self.stopping is not None

    def score(self, state: State) -> float:
        """`log_density` of windows, one step ahead."""
        rows = watched(self.stopping, self.scores)
        return log_density(self.model.engine, state, rows, self.model.default_seed, self.ranks)

    def refit(self) -> "SeriesProblem":
        return self.whole or self

    def after_first(self, first: Callable[[], Forecaster]) -> "SeriesProblem":
        """`calibrate` by the first fit's model, where steps are set apart for it."""
        return self.calibrate(first()) if self.calibrating else self

    def calibrate(self, model: Forecaster) -> "SeriesProblem":
        """The same problem with the classical members and calibrations found by this model."""
        classics = weigh(model, self.earlier, self.calibrating)
        mixed = replace(model, classics=classics)
        calibrations = {p: _calibration(mixed, self.calibrating, p) for p in model.variants}
        return replace(self, found=FirstFit(calibrations, classics))

    def measured(self, model: Forecaster) -> Forecaster:
        """The calibrated model with metrics and a detector for every variant.

        Both come from forecasts of the held-out end of each series.
        """
        variants = {
            prune: replace(
                variant, state=with_unseen(variant.state, model.network, model.default_seed)
            )
            for prune, variant in model.variants_by_prune.items()
        }
        model = model.with_variants(variants)
        found = self.found or self.calibrate(model).found
        assert found is not None
        notes = list(model.notes)
        if found.classics is not None and found.classics.share == 1:
            has_none = "no steps were left to weigh the network"
            why = "they forecast better" if self.calibrating else has_none
            notes.append(
                f"forecasts are of classical members alone, with every pruned variant: {why}"
            )
        variants = {
            prune: replace(variant, calibration=found.calibrations[prune])
            for prune, variant in variants.items()
        }
        model = replace(model, classics=found.classics, variants_by_prune=variants)
        origins, scored = model.held_out_origins(self.columns), {}
        for prune, variant in model.variants_by_prune.items():
            metrics = model.score_origins(origins, prune, SCORE_SAMPLES) | variant.metrics
            detector = _fit_detector(model, prune, origins, self.refit())
            scored[prune] = replace(variant, metrics=metrics, detector=detector)
            if has_diverged(metrics):
                notes.append(
                    f"prune {prune:g}: sample paths diverge; metrics that are not finite are null"
                )
        return replace(model, variants_by_prune=scored, notes=tuple(notes))


# What the calibration steps tell

_LEAST_SHARE = 0.02  # a share below it is not worth its paths


def weigh(
    model: Forecaster, earlier: Sequence[Origin], calibrating: Sequence[Origin]
) -> Classics | None:
    """The classical members, weighed by forecasts from earlier origins.

    Their share beside the network follows from the origins that calibrate, because the network has
    learned the steps before these. Without such origins nothing shows what the network's forecasts
    are worth. The classical members then forecast alone, unless there are covariates of the past,
    which only the network reads: then the network does.

    None if no origin has a long enough past, or if the network forecasts alone.
    """
    if not earlier:
        return None
    history, targets = _known(model, earlier)
    classics = Classics.fit(history.known, targets, model.frame.seasons, history.regressors)
    if not calibrating:
        return None if model.forecast.past else classics
    history, targets = _known(model, calibrating)
    alone = replace(model, classics=None).forecast_from(calibrating, 0.0, SCORE_SAMPLES)
    both = torch.stack(
        [
            classics.log_scores(history.known, targets, history.regressors).flatten(),
            log_scores(alone.paths, targets.to(model.device)).flatten().cpu(),
        ]
    )
    independent = overlaps_of(calibrating, model.horizon).worth().together
    share = float(stack(both, prior=1 / independent)[0])
    if share < _LEAST_SHARE:
        return None
    return replace(classics, share=1.0 if share > 1 - _LEAST_SHARE else share)


def _known(
    model: Forecaster, origins: Sequence[Origin]
) -> tuple[History, Float64[Tensor, "origins horizon"]]:
    """The histories at each origin, with what classical members read, and the u that followed."""
    ahead = [origin.ahead(model.horizon) for origin in origins]
    pasts = [origin.past for origin in origins]
    history = model.histories.encode(pasts, ahead, model.horizon, regressors=True)
    targets = np.stack([origin.targets(model.horizon) for origin in origins])
    return history, torch.from_numpy(model.frame.transform(targets))


def _calibration(
    model: Forecaster, chosen: Sequence[Origin], prune: float
) -> PathCalibration | None:
    """The calibration of a variant by forecasts from these origins.

    None without origins, and if a forecast is not finite.
    """
    if not chosen:
        return None
    values = np.concatenate([origin.targets(model.horizon) for origin in chosen])
    overlaps = overlaps_of(chosen, model.horizon)
    return model.forecast_from(chosen, prune, SCORE_SAMPLES).fit_calibration(
        torch.from_numpy(values).to(model.device),
        overlaps.worth(),
        overlaps.worth(sums_of_walks),
        [origin.series.times[origin.first] for origin in chosen],
    )


def _fit_detector(
    model: Forecaster, prune: float, held_out: Sequence[Origin], problem: SeriesProblem
) -> Detector:
    """Fit the configured false-alarm rate to forecasts of the held-out end.

    The forecasts are made as those of requests: a step reads the drawn values of the steps before.
    They overlap, so all their steps together weigh as much as the held-out ones. These are few. So
    the threshold is at least the score that the wanted share of forecasts of learned steps exceeds.
    """
    rate = model.config.false_alarm_rate
    usual = _ood_scores(model, held_out, prune)
    weights = np.full(len(usual), min(1.0, len(problem.scores) / len(usual)))
    detector = Detector.fit(DEFAULT_SCORES[model.task], usual, rate, weights)
    series = split_series(problem.columns, model.config.target, model.forecast, model.spacing)
    before, span = before_scores(series, model.config), model.frame.span
    at = find_origins(before, [span] * len(before), span, model.horizon)
    learned = _ood_scores(model, at, prune)
    least = np.quantile(learned[np.isfinite(learned)], 1 - rate) if len(learned) else 0.0
    return replace(detector, threshold=max(detector.threshold, float(least)))


def _ood_scores(model: Forecaster, chosen: Sequence[Origin], prune: float) -> np.ndarray:
    """The out-of-distribution score of each step of forecasts from these origins."""
    if not chosen:
        return np.array([])
    options = model.resolve(PredictOptions(samples=DEFAULT_SAMPLES, prune=prune))
    split = model.split(prune, options.samples)
    if not split.network:  # more samples have some draws of it
        split = Split.plan(options.samples, model.variant(prune).state.num_draws, 0.0)
    paths = model.network_paths(model.history_at(chosen), options, split)
    return Forecast(split.repeated(paths)).ood_score().cpu().numpy()


# How a table becomes a problem

_MOST_SCORED = 20_000  # windows that choose the epoch, and that are scored one step ahead


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
    forecast = config.series
    if (forecast.holidays is None) != (holidays is None):
        raise ValueError(
            f"forecast.holidays is {forecast.holidays!r}: give its days, and no others"
        )
    series = split_series(columns, config.target, forecast)
    spacing = Spacing.fit([one.times for one in series], forecast.zone)
    observation = observation_of(config, series)
    frame = Frame.of(forecast, observation)
    calibrating = calibration_origins(series, config, frame.span)
    notes = _notes(config, spacing, series, observation, calibrates=bool(calibrating))
    sets, stacked = SeriesSets.of(series, config), Stacked.of(series)

    def problem(ends: np.ndarray, stops: np.ndarray) -> SeriesProblem:
        """The problem that learns each series up to its end.

        The steps from there to its stop choose the epoch. Scales and encoders are fitted to the
        learned steps.
        """
        starts, never = np.zeros_like(ends), np.full_like(ends, stacked.begins[-1])
        learned = stacked.rows(stacked.between(starts, ends))
        encoder = fit_encoders(config, types, learned, spacing)
        panel = Panel.of(stacked, config, frame, Covariates(encoder, forecast, spacing, holidays))
        whole = stacked.whole_windows(stacked.columns[config.target], frame.span)

        def at(firsts: np.ndarray, lasts: np.ndarray) -> Tensor:
            return torch.from_numpy(np.flatnonzero(whole & stacked.between(firsts, lasts)))

        train = at(starts, ends)
        if not len(train):
            raise InvalidData("no window without a missing value is left to learn from", "/dataset")
        fitted = fit_frame(panel, frame, train)
        learning = CutRows.of(panel, fitted, train)
        stopping = CutRows.of(panel, fitted, at(ends, stops)).thinned(_MOST_SCORED)
        scores = CutRows.of(panel, fitted, at(sets.scores, never)).thinned(_MOST_SCORED)
        profile = RowProfile(
            learned=len(learning),
            stopping=len(stopping),
            calibration=len(at(sets.calibration, sets.scores)),
            held_out=len(scores),
            columns=summarise_columns(learned, encoder, config.target, "number"),
            described=len(learned[config.target]),
        )
        held_out = stacked.rows(stacked.between(sets.scores, never))
        model = Forecaster(
            config=config,
            encoder=encoder,
            variants_by_prune={},
            default_seed=derive_seed(config.training.seed, "prediction") % 2**31,
            notes=tuple(notes),
            frame=fitted,
            spacing=spacing,
            seen=SeenSeries.fit(config, types, learned, held_out),
            holidays=holidays,
        )
        rows, stops_early = learning.held_if_small(), stopping if len(stopping) else None
        return SeriesProblem(model, rows, stops_early, scores, profile, columns, ranks)

    first = problem(sets.stopping, sets.calibration)
    first.model.held_out_origins(columns)  # raises before a fit if there is none to score
    whole = problem(sets.scores, sets.scores) if config.training.refit else None
    earlier = weighing_origins(series, config, frame.span) if forecast.classics else []
    return replace(
        first,
        profile=(whole or first).profile,
        whole=whole,
        calibrating=tuple(calibrating),
        earlier=tuple(earlier),
    )


def _notes(
    config: ModelConfig,
    spacing: Spacing,
    series: Sequence[Series],
    observation: Observation,
    *,
    calibrates: bool,
) -> list[str]:
    """Notes on a missing calibration, uneven times and missing values."""
    notes = []
    if not config.training.calibration_fraction:
        notes.append("not calibrated: no steps were set apart for it (calibration_fraction 0)")
    elif not calibrates:
        notes.append("not calibrated: too few whole forecasts lie in the steps set apart for it")
    gaps = sum(len(one) - 1 for one in series)
    wrong = [~spacing.is_whole(one.times) | (spacing.gaps(one.times) > 1) for one in series]
    if uneven := sum(int(each.sum()) for each in wrong):
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
    return [*notes, *told(observation)]
