"""A trained forecaster: a one-step model of windows, rolled out into paths."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from models.config import (
    ForecastConfig,
    Json,
    ModelConfig,
    OutOfDistributionConfig,
    ZonedTime,
)
from models.evaluation.metrics import PerRowScores
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import Columns, InputColumn, join_rows
from models.features.targets import present
from models.forecasting.backtest import (
    Origin,
    Scores,
    backtest,
    origins,
    with_stand_ins,
    without,
    worths,
)
from models.forecasting.classics.classics import Classics
from models.forecasting.classics.member import Asked
from models.forecasting.features import (
    dynamic_width,
    feature_configs,
    joined,
    known_ahead,
    known_of,
    static_width,
)
from models.forecasting.forecast import Forecast
from models.forecasting.histories import Histories, SeriesAsked, check_future, group
from models.forecasting.holidays import Holidays
from models.forecasting.identity import keyed, unseen_key, with_unseen
from models.forecasting.newest import Newest, newest_of, origins_of
from models.forecasting.panel import continued
from models.forecasting.rollout import History, Paths, Rollout, Split, aligned
from models.forecasting.seen import SeenSeries
from models.forecasting.series import Series, in_utc, split_series
from models.forecasting.sets import divide
from models.forecasting.spacing import Spacing
from models.forecasting.totals.groups import read_groups
from models.forecasting.windows import Frame, fill
from models.inference.registry import method_of
from models.likelihoods import GaussianLikelihood, HeteroscedasticGaussian, HomoscedasticGaussian
from models.networks import Inputs, Network, TensorSlot
from models.prediction.answers.forecasts import ANOMALIES
from models.prediction.answers.reasons import COMBINATION, Reason
from models.prediction.engine import Engine
from models.prediction.mc_error import factor_at, until_accurate
from models.prediction.options import (
    BatchOptions,
    PredictOptions,
    ResolvedOptions,
    Totals,
)
from models.prediction.pauses import Pause, go_on
from models.prediction.prediction import RowPrediction, to_prediction
from models.prediction.summary import Summary
from models.prediction.threads import threads_for
from models.prediction.weight_draws import FittedDraws
from models.prediction.work import values_per_sample
from models.tabular.model import TabularModel

_MOST_KNOWN = 1_000  # steps of a history that classical members read; older ones tell little more
_SEASONS_KNOWN = 3  # of the longest season: at least these
_LAST = np.datetime64("9999-12-31", "us")  # the last date that RFC 3339 can write


@dataclass(frozen=True, kw_only=True)
class Forecaster(TabularModel):
    """A model of windows whose target is the next change. Its input is a history.

    Samples are whole weight draws for every method: a path uses the same weights at all steps.

    Args:
        classics: classical members, whose paths are mixed with the network's; None without any.
        holidays: of the calendar in `forecast.holidays`; None without one.
    """

    frame: Frame
    spacing: Spacing
    seen: SeenSeries | None = None
    classics: Classics | None = None
    holidays: Holidays | None = None

    @property
    def forecast(self) -> ForecastConfig:
        return self.config.forecast or ForecastConfig()

    @property
    def task(self) -> str:
        return "forecasting"

    @cached_property
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns of a history: time, target, covariates, key."""
        time, *others = self.encoder.inputs
        offset = any(one.offset for one in self.readings if one.name == time.name)
        local = self.forecast.local_zone
        zone = self.forecast.zone if offset else local
        time = replace(time, zone=zone, takes_local=local is not None)
        target = InputColumn(name=self.config.target, type="number", missing=True)
        return self._as_read([time, target, *others])

    @cached_property
    def future_inputs(self) -> tuple[InputColumn, ...]:
        """The covariates that a request must give for the steps ahead."""
        covariates = self.encoder.inputs[1 : 1 + len(self.config.features or ())]
        given = {*(self.forecast.static or ()), *self.forecast.past}
        return self._as_read([one for one in covariates if one.name not in given])

    @property
    def description(self) -> Json:
        return super().description | {
            "forecast": asdict(self.forecast) | self._time,
            "forecast_members": self._members(),
        }

    @property
    def _time(self) -> Json:
        """The name of the time column and, if it has one, its zone."""
        time = self.forecast.time
        if not isinstance(time, ZonedTime):
            return {"time": time}
        return {"time": time.column, "zone": time.zone, "utc": bool(time.utc)}

    def _members(self) -> list[Json]:
        """What forecasts are mixtures of, the heaviest first."""
        share = 0.0 if self.classics is None else self.classics.share
        found = [(1 - share, "network")]
        members = () if self.classics is None else self.classics.members
        found += [(share * one.weight, one.name) for one in members]
        return [{"name": name, "weight": weight} for weight, name in sorted(found, reverse=True)]

    def to_json(self) -> Json:
        series = {
            "frame": asdict(self.frame),
            "spacing": asdict(self.spacing),
            "seen": None if self.seen is None else asdict(self.seen),
            "classics": None if self.classics is None else asdict(self.classics),
            "holidays": None if self.holidays is None else asdict(self.holidays),
        }
        return super().to_json() | {"series": series}

    @classmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        features = feature_configs(config, data["stored"][0])
        return super().own_fields(replace(config, features=features), data) | data["series"]

    @cached_property
    def network(self) -> Network:
        static = static_width(self.encoder, self.config)
        shape = (self.frame.context, self.frame.channels + self._dynamic_width)
        slot = TensorSlot(0, shape)
        inputs = Inputs(slot.stop + static, slot)
        return keyed(self.encoder, self.config.network, inputs, self.likelihood.num_outputs)

    @property
    def _dynamic_width(self) -> int:
        of_holidays = 0 if self.holidays is None else self.holidays.width(self.spacing)
        return dynamic_width(self.encoder, self.config) + of_holidays

    @property
    def has_covariates(self) -> bool:
        """Whether more is known of a step than its time."""
        return bool(self.config.features) or self.holidays is not None

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.network, self.likelihood, self.target, whole_draws=True)

    def fitted(self, prune: float) -> FittedDraws:
        """A variant ready to be rolled out.

        Raises:
            UnknownVariant: naming the fractions that exist.
        """
        if prune not in self._fitted:  # if two threads prepare it, the first result is kept
            ready = FittedDraws.of(self.network, self.variant(prune).state)
            self._fitted.setdefault(prune, ready)
        fitted = self._fitted[prune]
        assert isinstance(fitted, FittedDraws)
        return fitted

    def split(self, prune: float, samples: int) -> Split:
        """The draws of the network and of the classical members in so many samples."""
        share = 0.0 if self.classics is None else self.classics.share
        return Split.plan(samples, self.variant(prune).state.num_draws, share)

    @property
    def unknown_options(self) -> Mapping[str, str]:
        others = super().unknown_options
        own = {name: message for name, message in others.items() if name != "horizon"}
        return own | {"explain": "forecasts are not explained: only models of rows are"}

    @property
    def horizon(self) -> int:
        """The steps ahead that the model was trained for."""
        return int(self.forecast.horizon or 1)

    def read(self, columns: Columns, future: Columns | None, options: ResolvedOptions) -> History:
        """Encode the series of a request, and the covariates of their steps ahead.

        The rows of each series are in the order of time. Those after its last known target are
        steps ahead.

        Raises:
            InvalidInput: naming what is missing or wrong.
        """
        horizon, time = options.horizon, str(self.forecast.time_column)
        missing = [column.name for column in self.inputs if column.name not in columns]
        if missing:
            raise InvalidInput(f"missing columns: {', '.join(missing)}", "/inputs")
        try:
            columns = in_utc(columns, self.forecast)
        except InvalidData as error:
            raise InvalidInput(error.message, f"/inputs/{time}") from error
        asked = Histories(self.config.target, self.forecast, self.frame, self.spacing).read(columns)
        covariates = check_future(asked, future, self.future_inputs, horizon, time)
        ahead = [
            self._ahead(one, known, horizon) for one, known in zip(asked, covariates, strict=True)
        ]
        pasts = [one.past for one in asked]
        reasons = [
            self._reasons(one.columns, known) + unseen_key(self.encoder, one.key)
            for one, known in zip(pasts, covariates, strict=True)
        ]
        keys = None if self.forecast.key is None else tuple(str(one.key) for one in pasts)
        times = np.concatenate([one[time] for one in ahead])
        read = [one.columns for one in pasts]
        return replace(
            self._history(pasts, ahead, horizon),
            newest=self._newest(pasts, options.anomalies),
            times=times,
            series=keys,
            reasons=tuple(reasons),
            groups=read_groups(options.totals or Totals(), keys, read, times),
        )

    def _newest(self, pasts: Sequence[Series], count: int | None) -> Newest | None:
        """The newest values of each series with their pasts; None if no anomalies are asked for."""
        if count is None:
            return None
        longest = self.horizon
        origins = [origins_of(one, count, self.frame.span, longest) for one in pasts]
        steps = max(1, *(int(one.leads.max()) for one in origins))
        histories = self._history(
            [past for one in origins for past in one.pasts],
            [ahead for one in origins for ahead in one.ahead(steps)],
            steps,
        )
        return newest_of(pasts, origins, histories, str(self.forecast.time_column))

    def _scored(self, x: History, options: ResolvedOptions, pause: Pause) -> Mapping[str, Summary]:
        """The answer about anomalies; {} if none are asked for."""
        if not isinstance(x.newest, Newest):
            return {}
        forecast = self.roll_out(x.newest.history, options, pause)
        rate = (self.config.out_of_distribution or OutOfDistributionConfig()).false_alarm_rate
        found = x.newest.scores(forecast, rate)
        if x.series is not None:
            keys = np.array(x.series, object)
            each = np.repeat(keys[:, None], x.newest.count, axis=1)
            found = found | {"series": each, "joint_series": keys}
        return {ANOMALIES.name: Summary(values=found)}

    def _ahead(self, one: SeriesAsked, covariates: Columns, horizon: int) -> Columns:
        """All columns of the steps ahead of a series.

        Raises:
            InvalidInput: if their times cannot be written.
        """
        time = str(self.forecast.time_column)
        given = one.ahead[time][:horizon]
        own = not self.spacing.is_regular and len(given) == horizon
        times = given if own else self.spacing.after(one.past.times, horizon)
        if np.issubdtype(times.dtype, np.datetime64) and times[-1] > _LAST:
            raise InvalidInput(f"{horizon} steps ahead is after the year 9999", "/horizon")
        ahead = {**covariates, time: times}
        for feature in self.features:  # the key, and what is static or not known ahead
            if feature.name not in ahead:
                ahead[feature.name] = np.repeat(one.past.columns[feature.name][-1:], horizon)
        return ahead

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

    def predict_rows(self, x: Tensor | History, options: BatchOptions) -> RowPrediction:
        """`predict` for the result of `read`; for encoded windows it predicts the next change."""
        return self.predict_pausing(x, options, go_on)

    def predict_pausing(
        self, x: Tensor | History, options: BatchOptions, pause: Pause
    ) -> RowPrediction:
        """With a pause before each step of each chunk of weight draws."""
        if not isinstance(x, History):
            return super().predict_pausing(x, options, pause)
        options = self.resolve(options)
        made: list[Forecast] = []

        def summarise(samples: int) -> Summary:
            made[:] = [self.roll_out(x, replace(options, samples=samples), pause)]
            return self._with_error(made[0].summarise(options), options, samples)

        if options.target_mc_error is None:
            summary, samples = summarise(options.samples), options.samples
        else:
            summary, samples = until_accurate(summarise, options.target_mc_error, options.samples)
        used = replace(options, samples=samples)
        summary = replace(summary, parts={**summary.parts, **self._scored(x, used, pause)})
        found = to_prediction(summary, used, self.detector(options.prune), self.task, None)
        if options.return_draws:
            found = found.with_draws(made[0].whole_paths.cpu().numpy())
        found = found.with_constants(paths=self.split(options.prune, samples).paths, **_named(x))
        return self._explained(found.with_values(time=x.times, **self._places(x)), x)

    @staticmethod
    def _places(x: History) -> Json:
        """The series and the step of each predicted row; none without a key."""
        if x.series is None:
            return {}
        steps = np.tile(np.arange(1, x.horizon + 1), len(x.series))
        return {"series": [key for key in x.series for _ in range(x.horizon)], "step": steps}

    def _reasons(self, past: Columns, future: Columns) -> tuple[Reason, ...]:
        """Why the steps that a forecast reads, and the covariates ahead, are unlike training's."""
        if self.seen is None:
            return ()
        names = self.seen.names
        read = {name: past[name][-self.frame.span :] for name in names}
        if not future:
            return self.seen.reasons(read)
        ahead = {name: future[name] for name in names if name in future}
        unknown = np.full(len(next(iter(future.values()))), np.nan)  # the target
        return self.seen.reasons(joined(read, {name: ahead.get(name, unknown) for name in names}))

    def _explained(self, answer: RowPrediction, x: History) -> RowPrediction:
        """The forecast with the reasons of its flags: an unusual history makes all steps unusual.

        Versions of releases that did not keep what training saw give no reasons.
        """
        if self.seen is None:
            return answer
        of_rows = x.reasons or ((),) * len(x.past)
        each = [reasons for reasons in of_rows for _ in range(x.horizon)]
        flagged = answer.out_of_distribution | np.array([bool(reasons) for reasons in each])
        rows = [
            (reasons or (COMBINATION,)) if one else ()
            for one, reasons in zip(flagged.tolist(), each, strict=True)
        ]
        return answer.with_values(out_of_distribution=flagged, reasons=rows)

    def with_reasons(self, prediction: RowPrediction, columns: Columns) -> RowPrediction:
        """The forecast, which has its reasons already."""
        return prediction

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
            assert history.known is not None
            asked = Asked(history.horizon, split.classics, split.paths, options.seed, pause)
            found = self.classics.paths(history.known, asked, history.regressors)
            parts.append(found.to(history.past.device))
        drawn = Paths.concatenate(parts, dim=0)
        calibration = self.variant(options.prune).calibration
        assert calibration is None or isinstance(calibration, PathCalibration)
        return Forecast(drawn, self.frame.observation, calibration, options.seed, history.groups)

    def network_paths(
        self, history: History, options: ResolvedOptions, split: Split, pause: Pause = go_on
    ) -> Paths:
        """The draws of the network in so many samples."""
        fitted, paths = self.fitted(options.prune), split.paths * split.repeats
        rollout = Rollout(self.frame, self._gaussian, fitted, options.seed, paths, pause)
        with threads_for(fitted.operations * len(history.past) * paths * split.network):
            return rollout.run(history, split.network, self.engine.memory_bytes)

    def calibrate(
        self, chosen: Sequence[Origin], prune: float, samples: int
    ) -> PathCalibration | None:
        """The calibration of a variant by forecasts from these origins.

        None without origins, and for forecasts that are not finite.
        """
        if not chosen:
            return None
        options = self.resolve(PredictOptions(samples=samples, prune=prune))
        rolled = self.roll_out(self.histories(chosen), options)
        values = np.concatenate([origin.targets(self.horizon) for origin in chosen])
        targets = torch.from_numpy(values).to(self.device)
        steps, sums = (worths(chosen, self.horizon, summed=summed) for summed in (False, True))
        times = [origin.series.times[origin.first] for origin in chosen]
        return rolled.fit_calibration(targets, steps, sums, times)

    def with_calibrations(self, found: Mapping[float, PathCalibration | None]) -> "Forecaster":
        """A copy with these calibrations of its variants."""
        return self.with_variants(
            {
                prune: replace(variant, calibration=found[prune])
                for prune, variant in self.variants_by_prune.items()
            }
        )

    def with_unseen_series(self) -> "Forecaster":
        """A copy whose variants know what to expect of a series with a key of its own."""
        return self.with_variants(
            {
                prune: replace(
                    variant, state=with_unseen(variant.state, self.network, self.default_seed)
                )
                for prune, variant in self.variants_by_prune.items()
            }
        )

    def row_scores(
        self,
        x: Tensor | History,
        truth: np.ndarray,
        options: PredictOptions,
        *,
        by_class: bool = False,
    ) -> PerRowScores:
        """The scores of each step ahead whose truth is known; for windows, of each next change.

        Raises:
            InvalidInput: if the model forecasts logarithms and a truth is not positive.
        """
        if not isinstance(x, History):
            return super().row_scores(x, truth, options)
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
        """The origins of forecasts that are scored on the held-out end of each series."""
        series = split_series(columns, self.config.target, self.forecast, self.spacing)
        firsts = [divide(len(one), self.config).scores for one in series]
        return origins(series, firsts, self.frame.span, self.horizon)

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
        return (str(self.forecast.time_column), *(() if key is None else (key,)))

    def row_groups(self, columns: Columns) -> list[np.ndarray]:
        """The rows of each series, in the order of time."""
        times = in_utc(columns, self.forecast)[str(self.forecast.time_column)]
        groups = group(columns, self.forecast.key)
        return [rows[np.argsort(times[rows], kind="stable")] for rows in groups]

    def num_rows(self, given: int, options: ResolvedOptions) -> int:
        """The steps ahead of one series."""
        return options.horizon

    def num_predicted(self, columns: Columns, options: ResolvedOptions) -> int:
        """The steps ahead of all series."""
        return self.unit(options) * len(group(columns, self.forecast.key))

    def unit(self, options: ResolvedOptions) -> int:
        """The steps ahead of one series, whose paths are whole."""
        return options.horizon

    def values_per_sample(self, options: ResolvedOptions) -> int:
        """The paths per sample, for each of which answers are computed.

        Of newest values that are scored as many as steps ahead count as one more answer.
        """
        split = self.split(options.prune, options.samples)
        newest = math.ceil((options.anomalies or 0) / options.horizon)
        return math.ceil(split.all_paths / options.samples) * (newest + values_per_sample(options))

    def example(self, columns: Columns) -> History:
        """A flat past."""
        return self.blank(self.horizon)

    def blank(self, size: int) -> History:
        """A flat past with `size` steps ahead, at most as many as in training."""
        horizon = min(size, self.horizon)
        static = static_width(self.encoder, self.config)
        dynamic = self._dynamic_width
        past = torch.zeros(1, self.frame.span, dtype=torch.float64)
        steps = self.frame.context - 1 + horizon
        known = torch.zeros(1, steps, dynamic), torch.zeros(1, static)
        return History(past, *known, horizon, known=past).to(self.device)

    def score_origins(self, chosen: Sequence[Origin], prune: float, samples: int) -> Json:
        """Metrics of forecasts from these origins, and of seasonal naive forecasts."""
        rolled = self._roll_out_at(chosen, prune, samples)
        return backtest(rolled, chosen, self.frame.season, self.horizon)

    def scores_at(self, chosen: Sequence[Origin], prune: float, samples: int) -> Scores:
        """The scores of each step of forecasts from these origins, one forecast after the other."""
        targets = np.stack([origin.targets(self.horizon) for origin in chosen])
        rolled = self._roll_out_at(chosen, prune, samples)
        return without(rolled.scores(with_stand_ins(targets).to(self.device)), targets)

    def _roll_out_at(self, chosen: Sequence[Origin], prune: float, samples: int) -> Forecast:
        options = self.resolve(PredictOptions(samples=samples, prune=prune))
        return self.roll_out(self.histories(chosen), options)

    def histories(self, chosen: Sequence[Origin]) -> History:
        """The histories at these origins, encoded."""
        ahead = [one.ahead(self.horizon) for one in chosen]
        return self._history([one.past for one in chosen], ahead, self.horizon)

    def regressors_at(self, chosen: Sequence[Origin]) -> Tensor | None:
        """`regressors` at these origins."""
        return self.regressors(
            [one.past for one in chosen], [one.ahead(self.horizon) for one in chosen]
        )

    def _history(self, pasts: Sequence[Series], ahead: Sequence[Columns], horizon: int) -> History:
        """The windows that end with these pasts, missing values filled, and what is known ahead."""
        names, context = [feature.name for feature in self.features], self.frame.context
        parts = []
        for one, after in zip(pasts, ahead, strict=True):
            behind = one.columns_of(names, context)
            parts.append(joined(behind, {name: after[name] for name in names}))
        firsts = np.arange(len(parts)) * (context + horizon)
        columns = join_rows(parts)
        known = known_of(self.encoder, self.config, columns, firsts)
        times = columns[str(self.forecast.time_column)]
        known = known.with_holidays(self.holidays, times, self.spacing)
        each = known.dynamic.unflatten(0, (len(parts), -1))
        dynamic = each[:, 1:]  # each step of a window has those of the step after it
        if known.observed.shape[1]:
            observed = known.observed.unflatten(0, (len(parts), -1))[:, :context]
            more = torch.stack([continued(one, horizon) for one in observed])
            dynamic = torch.cat([dynamic, more], dim=-1)
        read = torch.from_numpy(np.stack([self._window(one) for one in pasts]))
        found = History(read, dynamic, known.static, horizon, known=self._all_known(pasts))
        if self.classics is not None and self.classics.effects is not None:
            found = replace(found, regressors=self.regressors(pasts, ahead))
        return found.to(self.device)

    def regressors(self, pasts: Sequence[Series], ahead: Sequence[Columns]) -> Tensor | None:
        """What classical members read of their steps, and of those ahead; None without any.

        Rows begin with zeros where a series is shorter than others.
        """
        if not self.has_covariates:
            return None
        names = [feature.name for feature in self.features]
        parts = [
            joined(one.columns_of(names, self._most_known), {name: after[name] for name in names})
            for one, after in zip(pasts, ahead, strict=True)
        ]
        columns, time = join_rows(parts), str(self.forecast.time_column)
        read = known_ahead(self.encoder, self.config, columns)
        if self.holidays is not None:
            read = torch.cat([read, self.holidays.read(columns[time], self.spacing)], 1)
        lengths = [len(part[time]) for part in parts]
        each = [part.unsqueeze(0) for part in read.double().split(lengths)]
        return aligned(each, 0.0) if read.shape[1] else None

    def _window(self, one: Series) -> np.ndarray:
        """The steps that the network reads, missing values filled."""
        values = fill(self.frame.transform(one.values), self.frame.season)
        return values[len(one) - self.frame.span :]

    @property
    def _most_known(self) -> int:
        """Steps of a history that classical members read at most."""
        return max(_MOST_KNOWN, _SEASONS_KNOWN * self.frame.season)

    def _all_known(self, pasts: Sequence[Series]) -> Tensor | None:
        return aligned([self._known(one) for one in pasts])

    def _known(self, one: Series) -> Tensor:
        """u of the latest steps; NaN where a value is missing, or has no logarithm."""
        values = one.values[-self._most_known :]
        if self.frame.observation.needs_positive:
            values = np.where(values > 0, values, np.nan)
        return torch.from_numpy(self.frame.transform(values)).unsqueeze(0)

    def _with_error(self, summary: Summary, options: ResolvedOptions, samples: int) -> Summary:
        """The error of the means, as in `TabularModel`."""
        if method_of(self.config.method).has_fixed_members(1):
            return summary.with_errors(None)
        factors = self.variant(options.prune).error_factors
        return summary.with_errors(factor_at(factors, samples))

    @property
    def _gaussian(self) -> GaussianLikelihood:
        assert isinstance(self.likelihood, HeteroscedasticGaussian | HomoscedasticGaussian)
        return self.likelihood


def _named(x: History) -> Json:
    """The names of groups and the keys of their series, for the answer about totals."""
    groups, keys = x.groups, x.series
    if not groups.names or keys is None:
        return {}
    members = [[keys[k] for k in some] for some in groups.members]
    return {"groups": groups.names, "members": members}
