"""A trained forecaster: a network that predicts the next change, rolled out into sample paths."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from models.config import (
    FeatureConfig,
    ForecastConfig,
    Json,
    ModelConfig,
    ZonedTime,
)
from models.evaluation.detector import DEFAULT_SCORES, Detector
from models.evaluation.metrics import PerRowScores
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import Columns, InputColumn, join_rows, with_readings
from models.features.feature_encoder import FeatureEncoder
from models.features.targets import present
from models.forecasting.backtest import Scores, backtest, with_stand_ins, without
from models.forecasting.classics.classics import Classics
from models.forecasting.classics.member import PathRequest
from models.forecasting.forecast import Forecast
from models.forecasting.histories import History, HistoryEncoder
from models.forecasting.holidays import Holidays
from models.forecasting.identity import keyed, unseen_key
from models.forecasting.origins import Origin, SeriesSets, origins
from models.forecasting.panel import Covariates, feature_configs
from models.forecasting.rollout import Paths, Rollout, Split
from models.forecasting.series import (
    RequestedSeries,
    RequestReader,
    check_future,
    group,
    in_utc,
    split_series,
)
from models.forecasting.steps import Spacing
from models.forecasting.totals.series_groups import read_groups
from models.forecasting.unusual import SeenSeries, newest_values, score_newest
from models.forecasting.windows import Frame
from models.inference.registry import method_of
from models.likelihoods import GaussianLikelihood, build_likelihood
from models.model import TrainedModel
from models.networks import Inputs, Network, TensorSlot
from models.prediction.engine import Engine
from models.prediction.error_factors import factor_at, until_accurate
from models.prediction.options import (
    BatchOptions,
    PredictOptions,
    ResolvedOptions,
    Sampler,
    Totals,
)
from models.prediction.outputs.forecasts import ANOMALIES
from models.prediction.outputs.questions import not_answered
from models.prediction.outputs.reasons import COMBINATION, Reason
from models.prediction.pauses import Pause, go_on
from models.prediction.prediction import RowPrediction, to_prediction
from models.prediction.summary import Summary
from models.prediction.threads import threads_for
from models.prediction.work import values_per_sample

_PER_ANOMALY = 5  # time, value, p-value, surprise, flag
_LAST = np.datetime64("9999-12-31", "us")  # the last date that RFC 3339 can write


@dataclass(frozen=True, kw_only=True)
class Forecaster(TrainedModel):
    """A network, classical members beside it, the scale of the series, and calibrations of paths.

    The network predicts the next change of a window. A forecast rolls it out: each sample path uses
    the same drawn weights at all steps, whatever the method.

    Args:
        encoder: of the time, the covariates and the key.
        frame: how the network reads a window, on which scale, and what its output means.
        seen: the ranges of training's columns; None in versions of earlier releases.
        classics: classical members, whose paths are mixed with the network's; None without any.
        holidays: of the calendar in `forecast.holidays`; None without one.
    """

    encoder: FeatureEncoder
    frame: Frame
    spacing: Spacing
    seen: SeenSeries | None = None
    classics: Classics | None = None
    holidays: Holidays | None = None

    # What it is made of

    @property
    def forecast(self) -> ForecastConfig:
        return self.config.series

    @cached_property
    def histories(self) -> HistoryEncoder:
        covariates = Covariates(self.encoder, self.forecast, self.spacing, self.holidays)
        return HistoryEncoder(covariates, self.frame)

    @cached_property
    def likelihood(self) -> GaussianLikelihood:
        found = build_likelihood(self.config.likelihood, None, self.frame.change)
        assert isinstance(found, GaussianLikelihood)
        return found

    @cached_property
    def network(self) -> Network:
        covariates, frame = self.histories.covariates, self.frame
        slot = TensorSlot(0, (frame.context, frame.channels + covariates.dynamic_width))
        inputs = Inputs(slot.stop + covariates.static_width, slot)
        return keyed(self.encoder, self.config.network, inputs, self.likelihood.num_outputs)

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.network, self.likelihood, self.frame.change, whole_draws=True)

    def split(self, prune: float, samples: int) -> Split:
        """How many draws are of the network, and how many of the classical members."""
        share = 0.0 if self.classics is None else self.classics.share
        return Split.plan(samples, self.variant(prune).state.num_draws, share)

    def detector(self, prune: float) -> Detector:
        """The detector of a variant. Before the variant is scored, it flags no step."""
        return self.variant(prune).detector or Detector(DEFAULT_SCORES[self.task])

    # How it is described and stored

    @property
    def task(self) -> str:
        return "forecasting"

    @property
    def features(self) -> tuple[FeatureConfig, ...]:
        return self.encoder.features

    @cached_property
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns of a history: time, target, covariates, key."""
        time, *others = self.encoder.inputs
        offset = any(one.offset for one in self.readings if one.name == time.name)
        local = self.forecast.local_zone
        zone = self.forecast.zone if offset else local
        time = replace(time, zone=zone, takes_local=local is not None)
        target = InputColumn(name=self.config.target, type="number", missing=True)
        return with_readings([time, target, *others], self.readings, self.encoder.levels)

    @cached_property
    def future_inputs(self) -> tuple[InputColumn, ...]:
        """The covariates that a request must give for the steps ahead."""
        covariates = self.encoder.inputs[1 : 1 + len(self.config.features or ())]
        given = {*(self.forecast.static or ()), *self.forecast.past}
        needed = [one for one in covariates if one.name not in given]
        return with_readings(needed, self.readings, self.encoder.levels)

    @property
    def description(self) -> Json:
        time = self.forecast.time
        named: Json = {"time": time}
        if isinstance(time, ZonedTime):
            named = {"time": time.column, "zone": time.zone, "utc": bool(time.utc)}
        return super().description | {
            "forecast": asdict(self.forecast) | named,
            "forecast_members": self._members(),
        }

    def _members(self) -> list[Json]:
        """The parts of which forecasts are mixtures, the heaviest first."""
        share = 0.0 if self.classics is None else self.classics.share
        members = () if self.classics is None else self.classics.members
        found = [(1 - share, "network"), *((share * one.weight, one.name) for one in members)]
        return [{"name": name, "weight": weight} for weight, name in sorted(found, reverse=True)]

    def to_json(self) -> Json:
        parts = {
            name: getattr(self, name)
            for name in ("frame", "spacing", "seen", "classics", "holidays")
        }
        return {
            "stored": list(self.encoder.stored),
            "encoders": [asdict(encoder) for encoder in self.encoder.encoders],
            "seen": None,
            "target": asdict(self.frame.change),
            "series": {name: part and asdict(part) for name, part in parts.items()},
        }

    @classmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        stored = tuple(data["stored"])
        features = feature_configs(config, stored[0])
        return {"encoder": FeatureEncoder(features, stored, tuple(data["encoders"]))} | dict(
            data["series"]
        )

    # What it can do, and how much work that is

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        return self.engine.samplers

    @property
    def unknown_options(self) -> Mapping[str, str]:
        return {
            "top": "only language models have next tokens",
            **not_answered(self.task),
            "explain": "forecasts are not explained: only models of rows are",
        }

    def _check(self, options: BatchOptions) -> None:
        super()._check(options)
        self._check_intervals(options)

    @property
    def horizon(self) -> int:
        """The steps ahead that the model was trained for."""
        return self.forecast.steps

    @property
    def has_independent_rows(self) -> bool:
        """No: the steps of a path depend on those before them."""
        return False

    @property
    def series_column(self) -> str | None:
        """The key."""
        return self.forecast.key

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The time, and the key if there is one."""
        key = self.forecast.key
        return (self.forecast.time_name, *(() if key is None else (key,)))

    def row_groups(self, columns: Columns) -> list[np.ndarray]:
        """The rows of each series, in the order of time."""
        times = in_utc(columns, self.forecast)[self.forecast.time_name]
        groups = group(columns, self.forecast.key)
        return [rows[np.argsort(times[rows], kind="stable")] for rows in groups]

    def num_rows(self, given: int, options: ResolvedOptions) -> int:
        """The steps ahead of one series."""
        return options.horizon

    def num_predicted(self, columns: Columns, options: ResolvedOptions) -> int:
        """The steps ahead of all series."""
        return options.horizon * len(group(columns, self.forecast.key))

    def unit(self, options: ResolvedOptions) -> int:
        """The steps ahead of one series, whose paths are whole."""
        return options.horizon

    @property
    def bytes_per_row(self) -> int:
        """The encoded row and ten arrays, in float64."""
        return 8 * (2 * self.encoder.width + 10)

    def values_per_sample(self, options: ResolvedOptions) -> int:
        """The number of paths per sample, for each of which answers are computed.

        Newest values that are scored, as many as a forecast has steps, count as one more answer.
        """
        split, newest = self.split(options.prune, options.samples), _scored(options)
        return math.ceil(split.all_paths / options.samples) * (newest + values_per_sample(options))

    def values_per_row(self, options: ResolvedOptions) -> int:
        """With those of scored values; of whole paths all are returned."""
        paths = self.split(options.prune, options.samples).all_paths if options.return_draws else 0
        return super().values_per_row(options) + paths + _PER_ANOMALY * _scored(options)

    # Inputs

    def encode(self, columns: Columns) -> History:
        """The histories of a request with default options."""
        return self.read(columns, None, self.resolve(PredictOptions()))

    def example(self, columns: Columns) -> History:
        """A flat past."""
        return self.blank(self.horizon)

    def blank(self, size: int) -> History:
        """A flat past with `size` steps ahead, at most as many as in training."""
        return self.histories.blank(min(size, self.horizon)).to(self.device)

    def read(self, columns: Columns, future: Columns | None, options: ResolvedOptions) -> History:
        """Encode the series of a request, and the covariates of their steps ahead.

        The rows of each series are in the order of time. Rows after the last known target are steps
        ahead.

        Raises:
            InvalidInput: naming what is missing or wrong.
        """
        horizon, time = options.horizon, self.forecast.time_name
        missing = [column.name for column in self.inputs if column.name not in columns]
        if missing:
            raise InvalidInput(f"missing columns: {', '.join(missing)}", "/inputs")
        try:
            columns = in_utc(columns, self.forecast)
        except InvalidData as error:
            raise InvalidInput(error.message, f"/inputs/{time}") from error
        asked = RequestReader(self.config.target, self.forecast, self.frame, self.spacing).read(
            columns
        )
        covariates = check_future(asked, future, self.future_inputs, horizon)
        ahead = [
            self._ahead(one, known, horizon) for one, known in zip(asked, covariates, strict=True)
        ]
        pasts = [one.past for one in asked]
        reasons = [
            self._reasons(one.columns, known) + unseen_key(self.encoder, one.key)
            for one, known in zip(pasts, covariates, strict=True)
        ]
        newest = None
        if (count := options.anomalies) is not None:
            newest = newest_values(pasts, count, self.frame.span, self.horizon, self._encoded)
        keys = None if self.forecast.key is None else tuple(str(one.key) for one in pasts)
        times = np.concatenate([one[time] for one in ahead])
        read = [one.columns for one in pasts]
        return replace(
            self._encoded(pasts, ahead, horizon),
            newest=newest,
            times=times,
            series=keys,
            reasons=tuple(reasons),
            groups=read_groups(options.totals or Totals(), keys, read, times),
        )

    def _encoded(self, *series: Any) -> History:
        """`HistoryEncoder.encode` with regressors if the classical members read them."""
        reads = self.classics is not None and self.classics.effects is not None
        return self.histories.encode(*series, regressors=reads).to(self.device)

    def _ahead(self, one: RequestedSeries, covariates: Columns, horizon: int) -> Columns:
        """All columns of the steps ahead of a series.

        Raises:
            InvalidInput: if a time is after the year 9999.
        """
        time = self.forecast.time_name
        given = one.ahead[time][:horizon]
        is_given = not self.spacing.is_regular and len(given) == horizon
        times = given if is_given else self.spacing.after(one.past.times, horizon)
        if np.issubdtype(times.dtype, np.datetime64) and times[-1] > _LAST:
            raise InvalidInput(f"{horizon} steps ahead is after the year 9999", "/horizon")
        # the key, and what is static or not known ahead, stay as they are
        names = [feature.name for feature in self.features]
        last = {name: np.repeat(one.past.columns[name][-1:], horizon) for name in names}
        return {**last, **covariates, time: times}

    def _reasons(self, past: Columns, future: Columns) -> tuple[Reason, ...]:
        """Why the steps that a forecast reads, or the covariates ahead, are unlike those of
        training.
        """
        if self.seen is None:
            return ()
        read = {name: past[name][-self.frame.span :] for name in self.seen.names}
        if not future:
            return self.seen.reasons(read)
        unknown = np.full(len(next(iter(future.values()))), np.nan)  # the target
        return self.seen.reasons(
            join_rows([read, {name: future.get(name, unknown) for name in read}])
        )

    # Predictions

    def predict(
        self, columns: Columns, options: BatchOptions, future: Columns | None = None
    ) -> RowPrediction:
        """Forecast one series or several.

        Args:
            future: the covariates of the steps ahead of one series, unless `columns` has them.

        Raises:
            InvalidInput: for an unusable history, or an option that this model does not have.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        options = self.resolve(options)
        return self.predict_rows(self.read(columns, future, options), options)

    def predict_rows(self, x: History, options: BatchOptions) -> RowPrediction:
        """`predict` for the result of `read`."""
        return self.predict_pausing(x, options, go_on)

    def predict_pausing(self, x: History, options: BatchOptions, pause: Pause) -> RowPrediction:
        """`predict_rows` with a pause before each step of each chunk of weight draws."""
        options = self.resolve(options)
        made: list[Forecast] = []

        def summarise(samples: int) -> Summary:
            made[:] = [self.roll_out(x, replace(options, samples=samples), pause)]
            summary = made[0].summarise(options)
            if method_of(self.config.method).has_fixed_members(1):
                return summary.with_errors(None)
            factors = self.variant(options.prune).error_factors
            return summary.with_errors(factor_at(factors, samples))

        if options.target_mc_error is None:
            summary, samples = summarise(options.samples), options.samples
        else:
            summary, samples = until_accurate(summarise, options.target_mc_error, options.samples)
        used = replace(options, samples=samples)
        summary = replace(summary, parts={**summary.parts, **self._anomalies(x, used, pause)})
        found = to_prediction(summary, used, self.detector(options.prune), self.task, None)
        if options.return_draws:
            found = found.with_draws(made[0].whole_paths.cpu().numpy())
        found = found.with_constants(paths=self.split(options.prune, samples).paths)
        return self._with_reasons(_with_places(found.with_values(time=x.times), x), x)

    def _anomalies(
        self, x: History, options: ResolvedOptions, pause: Pause
    ) -> Mapping[str, Summary]:
        """The answer about the newest values; empty if none is asked for."""
        if x.newest is None:
            return {}
        forecast = self.roll_out(x.newest.history, options, pause)
        found = score_newest(x.newest, forecast, self.config.false_alarm_rate)
        if x.series is not None:
            keys = np.array(x.series, object)
            each = np.repeat(keys[:, None], x.newest.count, axis=1)
            found |= {"series": each, "joint_series": keys}
        return {ANOMALIES.name: Summary(values=found)}

    def _with_reasons(self, answer: RowPrediction, x: History) -> RowPrediction:
        """The forecast with the reasons of its flags. An unusual history flags all steps.

        Versions of releases that did not keep the ranges of training give no reasons.
        """
        if self.seen is None:
            return answer
        of_rows = x.reasons or ((),) * len(x.past)
        each = [reasons for reasons in of_rows for _ in range(x.horizon)]
        flagged = answer.out_of_distribution | np.array([bool(reasons) for reasons in each])
        rows = [
            (reasons or (COMBINATION,)) if is_flagged else ()
            for is_flagged, reasons in zip(flagged.tolist(), each, strict=True)
        ]
        return answer.with_values(out_of_distribution=flagged, reasons=rows)

    def roll_out(
        self, history: History, options: ResolvedOptions, pause: Pause = go_on
    ) -> Forecast:
        """Draw sample paths of the network and of the classical members."""
        split = self.split(options.prune, options.samples)
        parts = []
        if split.network:
            parts.append(split.repeated(self.network_paths(history, options, split, pause)))
        if split.classics:
            assert self.classics is not None
            asked = PathRequest(history.horizon, split.classics, split.paths, options.seed, pause)
            found = self.classics.paths(history.known, asked, history.regressors)
            parts.append(found.to(history.past.device))
        drawn = Paths.concatenate(parts, dim=0)
        calibration = self.variant(options.prune).calibration
        assert calibration is None or isinstance(calibration, PathCalibration)
        return Forecast(drawn, self.frame.observation, calibration, options.seed, history.groups)

    def network_paths(
        self, history: History, options: ResolvedOptions, split: Split, pause: Pause = go_on
    ) -> Paths:
        """The network's paths. `repeated` makes the draws of `split` of them."""
        fitted, paths = self.fitted(options.prune), split.paths * split.repeats
        rollout = Rollout(self.frame, self.likelihood, fitted, options.seed, paths, pause)
        with threads_for(fitted.operations * len(history.past) * paths * split.network):
            return rollout.run(history, split.network, self.engine.memory_bytes)

    # Scores

    def row_scores(
        self, x: History, truth: np.ndarray, options: PredictOptions, *, by_class: bool = False
    ) -> PerRowScores:
        """The scores of the steps ahead whose truth is known.

        Raises:
            InvalidInput: if the model forecasts logarithms and a truth is not positive.
        """
        needs = self.frame.observation.needs_positive
        if needs and (lowest := float(np.nanmin(truth))) <= 0:
            raise InvalidInput(f"this model forecasts logarithms; {lowest:g} has none", "/truth")
        known = torch.from_numpy(np.flatnonzero(present(truth)))
        rolled = self.roll_out(x, self.resolve(options))
        scores = rolled.scores(torch.from_numpy(truth).to(x.past.device))
        return {name: values.cpu()[known] for name, values in scores.items()}

    def evaluate(self, columns: Columns, *, prune: float = 0.0, samples: int = 100) -> Json:
        """Back-test every series from the first step that has a long enough past.

        Raises:
            InvalidData: if no series is long enough, or the model forecasts logarithms and a value
                is not positive.
        """
        series = split_series(columns, self.config.target, self.forecast, self.spacing)
        lowest = min(float(np.nanmin(one.values)) for one in series)
        if self.frame.observation.needs_positive and lowest <= 0:
            raise InvalidData(f"this model forecasts logarithms; {lowest:g} has none", "/dataset")
        firsts = [self.frame.span] * len(series)
        chosen = origins(series, firsts, self.frame.span, self.horizon)
        return self.score_origins(chosen, prune, samples)

    def held_out_origins(self, columns: Columns) -> list[Origin]:
        """The origins of forecasts that are scored on the held-out end of each series.

        Raises:
            InvalidData: if there is none.
        """
        series = split_series(columns, self.config.target, self.forecast, self.spacing)
        firsts = SeriesSets.of(series, self.config).scores.tolist()
        return origins(series, firsts, self.frame.span, self.horizon)

    def score_origins(self, chosen: Sequence[Origin], prune: float, samples: int) -> Json:
        """Metrics of forecasts from these origins, and of seasonal naive forecasts."""
        rolled = self.forecast_from(chosen, prune, samples)
        return backtest(rolled, chosen, self.frame.season, self.horizon)

    def scores_at(self, chosen: Sequence[Origin], prune: float, samples: int) -> Scores:
        """The scores of each step of forecasts from these origins, one forecast after the other."""
        targets = np.stack([origin.targets(self.horizon) for origin in chosen])
        rolled = self.forecast_from(chosen, prune, samples)
        return without(rolled.scores(with_stand_ins(targets).to(self.device)), targets)

    def forecast_from(self, chosen: Sequence[Origin], prune: float, samples: int) -> Forecast:
        """The forecasts from these origins, one after the other."""
        options = self.resolve(PredictOptions(samples=samples, prune=prune))
        return self.roll_out(self.history_at(chosen), options)

    def history_at(self, chosen: Sequence[Origin]) -> History:
        """The histories at these origins, encoded."""
        ahead = [one.ahead(self.horizon) for one in chosen]
        return self._encoded([one.past for one in chosen], ahead, self.horizon)


def _scored(options: ResolvedOptions) -> int:
    """Scored newest values of a series for each of its steps ahead."""
    return math.ceil((options.anomalies or 0) / options.horizon)


def _with_places(answer: RowPrediction, x: History) -> RowPrediction:
    """The answer with the series and step of each row, and the series of each group, if there is a
    key.
    """
    if (keys := x.series) is None:
        return answer
    if x.groups.names:
        members = [[keys[k] for k in each] for each in x.groups.members]
        answer = answer.with_constants(groups=x.groups.names, members=members)
    steps = np.tile(np.arange(1, x.horizon + 1), len(keys))
    return answer.with_values(series=[key for key in keys for _ in range(x.horizon)], step=steps)
