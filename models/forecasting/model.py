"""A trained forecaster: a one-step model of windows, rolled out into paths."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from models.config import EnsembleConfig, ForecastConfig, Json, ModelConfig
from models.evaluation.metrics import PerRowScores
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import Columns, InputColumn
from models.features.rows import Rows
from models.features.targets import present
from models.forecasting.backtest import (
    Origin,
    Scores,
    backtest,
    has_diverged,
    origins,
    worths,
)
from models.forecasting.classics.classics import Classics
from models.forecasting.classics.member import Asked
from models.forecasting.features import (
    Known,
    dynamic_width,
    feature_configs,
    joined,
    known_of,
    static_width,
)
from models.forecasting.forecast import Forecast
from models.forecasting.histories import check_future, check_history
from models.forecasting.mixing import Split
from models.forecasting.panels.identity import keyed, unseen_key, with_unseen
from models.forecasting.panels.observed import continued
from models.forecasting.rollout import History, Paths, Rollout
from models.forecasting.seen import SeenSeries
from models.forecasting.series import Series, split_series
from models.forecasting.sets import divide
from models.forecasting.spacing import Spacing
from models.forecasting.windows import CHANNELS, Frame
from models.likelihoods import GaussianLikelihood, HeteroscedasticGaussian, HomoscedasticGaussian
from models.networks import Inputs, Network, TensorSlot
from models.prediction.answers.reasons import COMBINATION, REASONS, Reason, Reasons
from models.prediction.engine import Engine
from models.prediction.mc_error import corrected, factor_at, until_accurate, without_errors
from models.prediction.options import BatchOptions, PredictOptions, ResolvedOptions
from models.prediction.prediction import Arrays, RowPrediction, to_prediction
from models.prediction.threads import threads_for
from models.prediction.weight_draws import FittedDraws
from models.prediction.work import values_per_sample
from models.tabular.model import TabularModel

_MOST_KNOWN = 1_000  # steps of a history that classical members read; older ones tell little more
_LAST = np.datetime64("9999-12-31", "us")  # the last date that RFC 3339 can write


@dataclass(frozen=True, kw_only=True)
class Forecaster(TabularModel):
    """A model of windows whose target is the next change. Its input is a history.

    Samples are whole weight draws for every method: a path uses the same weights at all steps.

    Args:
        classics: classical members, whose paths are mixed with the network's; None without any.
    """

    frame: Frame
    spacing: Spacing
    seen: SeenSeries | None = None
    classics: Classics | None = None

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
            "forecast": asdict(self.forecast),
            "forecast_members": self._members(),
        }

    def _members(self) -> list[Json]:
        """What forecasts are mixtures of, the heaviest first."""
        share = 0.0 if self.classics is None else self.classics.share
        found = [(1 - share, "network")]
        members = () if self.classics is None else self.classics.members
        found += [(share * one.weight, one.member.name) for one in members]
        return [{"name": name, "weight": weight} for weight, name in sorted(found, reverse=True)]

    def to_json(self) -> Json:
        series = {
            "frame": asdict(self.frame),
            "spacing": asdict(self.spacing),
            "seen": None if self.seen is None else asdict(self.seen),
            "classics": None if self.classics is None else asdict(self.classics),
        }
        return super().to_json() | {"series": series}

    @classmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        features = feature_configs(config, data["stored"][0])
        return super().own_fields(replace(config, features=features), data) | data["series"]

    @cached_property
    def network(self) -> Network:
        static = static_width(self.encoder, self.config)
        shape = (self.frame.context, CHANNELS + dynamic_width(self.encoder, self.config))
        slot = TensorSlot(0, shape)
        inputs = Inputs(slot.stop + static, slot)
        return keyed(self.encoder, self.config.network, inputs, self.likelihood.num_outputs)

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
        """Encode one series, with rows in the order of time, and the covariates of the steps ahead.

        Raises:
            InvalidInput: naming what is missing or wrong.
        """
        horizon = options.horizon
        missing = [column.name for column in self.inputs if column.name not in columns]
        if missing:
            raise InvalidInput(f"missing columns: {', '.join(missing)}", "/inputs")
        one = check_history(columns, self.config.target, self.forecast, self.frame, self.spacing)
        times = self.spacing.after(one.times, horizon)
        if np.issubdtype(times.dtype, np.datetime64) and times[-1] > _LAST:
            raise InvalidInput(f"{horizon} steps ahead is after the year 9999", "/horizon")
        ahead = {
            **check_future(future, self.future_inputs, horizon),
            str(self.forecast.time): times,
        }
        for feature in self.features:  # the key, and what is static or not known ahead
            if feature.name not in ahead:
                ahead[feature.name] = np.repeat(one.columns[feature.name][-1:], horizon)
        history = self._history(one, ahead, horizon)
        reasons = self._reasons(one.columns, future) + unseen_key(self.encoder, one.key)
        return replace(history, times=times, reasons=reasons)

    def predict(
        self, columns: Columns, options: BatchOptions, future: Columns | None = None
    ) -> RowPrediction:
        """Forecast one series.

        Raises:
            InvalidInput: for an unusable history, or an option that this model does not have.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        options = self.resolve(options)
        return self.predict_rows(self.read(columns, future, options), options)

    def predict_rows(self, x: Tensor | History, options: BatchOptions) -> RowPrediction:
        """`predict` for the result of `read`; for encoded windows it predicts the next change."""
        if not isinstance(x, History):
            return super().predict_rows(x, options)
        options = self.resolve(options)
        made: list[Forecast] = []

        def summarise(samples: int) -> Arrays:
            made[:] = [self.roll_out(x, replace(options, samples=samples))]
            return self._with_error(made[0].summarise(options), options, samples)

        if options.target_mc_error is None:
            summary, samples = summarise(options.samples), options.samples
        else:
            summary, samples = until_accurate(summarise, options.target_mc_error, options.samples)
        used = replace(options, samples=samples)
        answer = self._explained(
            to_prediction(summary, used, self.detector(options.prune), None), x
        )
        draws = made[0].whole_paths.cpu().numpy() if options.return_draws else None
        paths = self.split(options.prune, samples).paths
        return replace(answer, draws=draws, times=x.times, paths=paths)

    def _reasons(self, past: Columns, future: Columns | None) -> tuple[Reason, ...]:
        """Why the steps that a forecast reads, and the covariates ahead, are unlike training's."""
        if self.seen is None:
            return ()
        names = self.seen.names
        read = {name: past[name][-self.frame.span :] for name in names}
        if future is None:
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
        flagged = answer.out_of_distribution | bool(x.reasons)
        reasons = x.reasons or (COMBINATION,)
        rows = Reasons([reasons if one else () for one in flagged.tolist()])
        answers = {**answer.answers, REASONS: rows}
        return replace(answer, out_of_distribution=flagged, answers=answers)

    def with_reasons(self, prediction: RowPrediction, columns: Columns) -> RowPrediction:
        """The forecast, which has its reasons already."""
        return prediction

    def roll_out(self, history: History, options: ResolvedOptions) -> Forecast:
        """Draw sample paths of the network and of the classical members."""
        split = self.split(options.prune, options.samples)
        parts = []
        if split.network:
            parts.append(split.repeated(self._network_paths(history, options, split)))
        if split.classics:
            assert self.classics is not None
            assert history.known is not None
            asked = Asked(history.horizon, split.classics, split.paths, options.seed)
            found = self.classics.paths(history.known, asked)
            parts.append(found.to(history.past.device))
        drawn = Paths.concatenate(parts, dim=0)
        calibration = self.variant(options.prune).calibration
        assert calibration is None or isinstance(calibration, PathCalibration)
        return Forecast(drawn, self.frame.observation, calibration, options.seed)

    def _network_paths(self, history: History, options: ResolvedOptions, split: Split) -> Paths:
        fitted, paths = self.fitted(options.prune), split.paths * split.repeats
        rollout = Rollout(self.frame, self._gaussian, fitted, options.seed, paths)
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
        self, x: Tensor | History, truth: np.ndarray, options: PredictOptions
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
        series = split_series(columns, self.config.target, self.forecast)
        lowest = min(float(np.nanmin(one.values)) for one in series)
        if self.frame.observation.needs_positive and lowest <= 0:
            raise InvalidData(f"this model forecasts logarithms; {lowest:g} has none", "/dataset")
        firsts = [self.frame.span] * len(series)
        chosen = origins(series, firsts, self.frame.span, self.horizon)
        return self.score_origins(chosen, prune, samples)

    def score(
        self, prune: float, held_out: Rows, columns: Columns, samples: int
    ) -> tuple[Json, None]:
        """Back-test the held-out end of each series."""
        return self.score_origins(self.held_out_origins(columns), prune, samples), None

    def notes_on(self, metrics: Mapping[float, Json]) -> tuple[str, ...]:
        """Notes on variants whose paths diverge."""
        return tuple(
            f"prune {prune:g}: sample paths diverge; metrics that are not finite are null"
            for prune, found in metrics.items()
            if has_diverged(found)
        )

    def held_out_origins(self, columns: Columns) -> list[Origin]:
        """The origins of forecasts that are scored on the held-out end of each series."""
        series = split_series(columns, self.config.target, self.forecast)
        firsts = [divide(len(one), self.config).scores for one in series]
        return origins(series, firsts, self.frame.span, self.horizon)

    @property
    def has_independent_rows(self) -> bool:
        """No: the steps of a path depend on those before them."""
        return False

    def num_rows(self, given: int, options: ResolvedOptions) -> int:
        """The steps ahead."""
        return options.horizon

    def values_per_sample(self, options: ResolvedOptions) -> int:
        """The paths per sample, for each of which answers are computed."""
        split = self.split(options.prune, options.samples)
        return math.ceil(split.all_paths / options.samples) * values_per_sample(options)

    def example(self, columns: Columns) -> History:
        """A flat past."""
        return self.blank(self.horizon)

    def blank(self, size: int) -> History:
        """A flat past with `size` steps ahead, at most as many as in training."""
        horizon = min(size, self.horizon)
        static = static_width(self.encoder, self.config)
        dynamic = dynamic_width(self.encoder, self.config)
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
        targets = np.concatenate([origin.targets(self.horizon) for origin in chosen])
        rolled = self._roll_out_at(chosen, prune, samples)
        return rolled.scores(torch.from_numpy(targets).to(self.device))

    def _roll_out_at(self, chosen: Sequence[Origin], prune: float, samples: int) -> Forecast:
        options = self.resolve(PredictOptions(samples=samples, prune=prune))
        return self.roll_out(self.histories(chosen), options)

    def histories(self, chosen: Sequence[Origin]) -> History:
        """The histories at these origins, encoded."""
        return History.concatenate([self._at(origin, self.horizon) for origin in chosen])

    def _at(self, origin: Origin, horizon: int) -> History:
        """The history at an origin of a back-test."""
        columns = origin.series.columns
        ahead = {k: v[origin.first : origin.first + horizon] for k, v in columns.items()}
        return self._history(origin.past, ahead, horizon)

    def _history(self, one: Series, ahead: Columns, horizon: int) -> History:
        names, context = [feature.name for feature in self.features], self.frame.context
        behind = {name: one.columns[name][len(one) - context :] for name in names}
        columns = joined(behind, {name: ahead[name] for name in names})
        known: Known = known_of(self.encoder, self.config, columns, np.zeros(1, np.int64))
        dynamic = known.dynamic[1:]  # each step of a window has those of the step after it
        if known.observed.shape[1]:
            dynamic = torch.cat([dynamic, continued(known.observed[:context], horizon)], dim=-1)
        values = self.frame.transform(one.values[len(one) - self.frame.span :])
        past = torch.from_numpy(values).unsqueeze(0)
        history = History(past, dynamic.unsqueeze(0), known.static, horizon)
        return replace(history, known=self._known(one)).to(self.device)

    def _known(self, one: Series) -> Tensor:
        """u of the latest steps; NaN where a value is missing, or has no logarithm."""
        values = one.values[-_MOST_KNOWN:]
        if self.frame.observation.needs_positive:
            values = np.where(values > 0, values, np.nan)
        return torch.from_numpy(self.frame.transform(values)).unsqueeze(0)

    def _with_error(self, summary: Arrays, options: ResolvedOptions, samples: int) -> Arrays:
        """The error of the means, as in `TabularModel`."""
        if isinstance(self.config.method, EnsembleConfig):
            return without_errors(summary)
        factors = self.variant(options.prune).error_factors
        return corrected(summary, factor_at(factors, samples))

    @property
    def _gaussian(self) -> GaussianLikelihood:
        assert isinstance(self.likelihood, HeteroscedasticGaussian | HomoscedasticGaussian)
        return self.likelihood
