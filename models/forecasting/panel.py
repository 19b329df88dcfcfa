"""Covariates as network inputs, and panels: series from which windows are cut for training.

A panel holds each step of all series once, so that a million windows of a hundred steps take no
more memory than the series themselves.

The time's phases, covariates that are known ahead, holidays and the series' key are inputs of the
step before which they are known. Covariates that are known only in the past are different: the
network predicts the step h ahead of a forecast's origin, and nobody knows them for the h − 1 steps
before it. For these steps they keep the last known value, and an indicator marks them. In training,
h of each window is drawn once, evenly from 1 to the horizon. So the network learns p(next change |
the series so far, covariates up to the origin) for each h.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from models.config import FeatureConfig, ForecastConfig, ModelConfig
from models.features.categories import CategoryEncoder, KeyEncoder
from models.features.columns import Columns, convert, join_rows, select_rows
from models.features.encoders import CYCLES, DatetimeEncoder, Encoder, NumberEncoder, fit_encoder
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows, evenly_spread
from models.forecasting.holidays import Holidays
from models.forecasting.series import Series
from models.forecasting.steps import Spacing
from models.forecasting.windows import MOST_MISSING, Frame, Pasts, fill
from models.randomness import generator
from models.tensors import TensorRecord

_NOTHING = NumberEncoder(mean=0.0, std=0.0, indicator=False)


def feature_configs(config: ModelConfig, time_type: str) -> tuple[FeatureConfig, ...]:
    """The time, the covariates and, last, the key."""
    time = FeatureConfig(name=config.series.time_name, type=time_type)  # type: ignore[arg-type]
    key = config.series.key
    keys = () if key is None else (FeatureConfig(name=key, type="category"),)
    return time, *(config.features or ()), *keys


def fit_encoders(
    config: ModelConfig, types: Mapping[str, str], columns: Columns, spacing: Spacing
) -> FeatureEncoder:
    """Encoders fitted to these columns. The time has phases, in cycles of two steps or more.

    The instant itself is not an input: forecasts are of later instants than training has.
    """
    forecast = config.series
    features = feature_configs(config, types[forecast.time_name])
    first: Encoder = _NOTHING
    phases = fit_encoder(features[0], columns[forecast.time_name])
    if isinstance(phases, DatetimeEncoder):
        slow = tuple(c for c in phases.cycles if CYCLES[c][0] >= 2 * spacing.microseconds)
        first = DatetimeEncoder(_NOTHING, slow, zone=forecast.zone)
    others = [
        _fit(f, convert(columns[f.name], types[f.name], f.type), forecast) for f in features[1:]
    ]
    return FeatureEncoder(features, tuple(types[f.name] for f in features), (first, *others))


def _fit(feature: FeatureConfig, values: np.ndarray, forecast: ForecastConfig) -> Encoder:
    """The encoder of a covariate, or of the key as `forecast.identity` says."""
    if feature.name != forecast.key or forecast.identity in (None, "one_hot"):
        return fit_encoder(feature, values)
    return KeyEncoder.fit(values) if forecast.identity == "embedding" else CategoryEncoder(())


@dataclass(frozen=True)
class Known:
    """Inputs of consecutive steps beside the values.

    Args:
        dynamic: known before each step.
        observed: known only after it.
        static: of each series as a whole.
    """

    dynamic: Float[Tensor, "steps dynamic"]
    observed: Float[Tensor, "steps observed"]
    static: Float[Tensor, "*series static"]


@dataclass(frozen=True)
class Covariates:
    """Encodes what is known of steps beside the values.

    Args:
        encoder: of the time, the covariates and the key (`feature_configs`).
        holidays: of a calendar, which are inputs too; None without one.
    """

    encoder: FeatureEncoder
    forecast: ForecastConfig
    spacing: Spacing
    holidays: Holidays | None = None

    @cached_property
    def static_width(self) -> int:
        """The number of inputs that are the same at every step of a series: those of its key."""
        return 0 if self.forecast.key is None else self.encoder.encoders[-1].form.width

    @cached_property
    def dynamic_width(self) -> int:
        """The number of other inputs of a step, with the indicator of observed ones."""
        widths = {f.name: e.form.width for f, e in self._pairs}
        is_marked = any(widths[name] for name in self.forecast.past if name in widths)
        of_holidays = 0 if self.holidays is None else self.holidays.width(self.spacing)
        return self.encoder.width - self.static_width + int(is_marked) + of_holidays

    @property
    def _pairs(self) -> list[tuple[FeatureConfig, Encoder]]:
        return list(zip(self.encoder.features, self.encoder.encoders, strict=True))

    def read(self, columns: Columns, firsts: np.ndarray) -> Known:
        """The inputs of series one after the other.

        Args:
            firsts: the first row of each series, at which its key is read.

        Raises:
            InvalidInput: if holidays of a step are not known.
        """
        past, key = self.forecast.past, {self.forecast.key} - {None}
        names = [feature.name for feature in self.encoder.features]
        first = {name: columns[name][firsts] for name in names}
        dynamic = self._encoded([name for name in names if name not in {*past, *key}], columns)
        return Known(
            self._with_holidays(dynamic, columns),
            self._encoded([name for name in names if name in past], columns),
            self._encoded([name for name in names if name in key], first),
        )

    def changing(self, columns: Columns) -> Float[Tensor, "steps inputs"]:
        """The inputs that change within a series and are known ahead, without those of the time."""
        forecast = self.forecast
        others = {forecast.time_name, forecast.key, *forecast.past, *(forecast.static or ())}
        names = [f.name for f in self.encoder.features if f.name not in others]
        return self._with_holidays(self._encoded(names, columns), columns)

    def _with_holidays(self, inputs: Tensor, columns: Columns) -> Tensor:
        if self.holidays is None:
            return inputs
        times = columns[self.forecast.time_name]
        return torch.cat([inputs, self.holidays.read(times, self.spacing)], 1)

    def _encoded(self, names: Sequence[str], columns: Columns) -> Tensor:
        """The inputs of some of the columns."""
        every = [feature.name for feature in self.encoder.features]
        if not names:
            return torch.empty(len(columns[every[0]]), 0)
        return self.encoder.part([every.index(name) for name in names]).encode(columns)


@dataclass(frozen=True)
class Stacked:
    """The columns of all series, one series after the other.

    Args:
        begins: as in `Panel`.
        step: the number of each row's step within its series.
        series: the number of each row's series.
    """

    columns: Columns
    begins: Int64[np.ndarray, "bounds"]
    step: Int64[np.ndarray, "rows"]
    series: Int64[np.ndarray, "rows"]

    @classmethod
    def of(cls, series: Sequence[Series]) -> "Stacked":
        lengths = np.array([len(one) for one in series])
        begins = np.concatenate([[0], np.cumsum(lengths)])
        number = np.repeat(np.arange(len(series)), lengths)
        columns = join_rows([one.columns for one in series])
        return cls(columns, begins, np.arange(begins[-1]) - begins[number], number)

    def rows(self, chosen: np.ndarray) -> Columns:
        """The columns of these rows."""
        return select_rows(self.columns, chosen)

    def between(self, firsts: np.ndarray, stops: np.ndarray) -> Bool[np.ndarray, "rows"]:
        """Whether each row's step is at or after its series' first and before its stop."""
        return (self.step >= firsts[self.series]) & (self.step < stops[self.series])

    def whole_windows(self, values: np.ndarray, span: int) -> Bool[np.ndarray, "rows"]:
        """Whether each row is known and follows `span` steps of its series that can be read.

        These can be read if the last is known and at most `MOST_MISSING` are missing.
        """
        missing = np.isnan(values)
        before = np.concatenate([[0], np.cumsum(missing)])
        has_past = (self.step >= span) & ~missing & ~np.concatenate([[True], missing[:-1]])
        start = np.where(has_past, np.arange(len(values)) - span, 0)
        return has_past & (before[:-1] - before[start] <= MOST_MISSING * span)


def hold_last(
    values: Float[Tensor, "steps observed"],
    positions: Int64[Tensor, "rows context"],
    last: Int64[Tensor, "rows"],
) -> Float[Tensor, "rows context marked"]:
    """The values at these positions, where `last` is the last known one of each row, and an
    indicator.
    """
    until = last.unsqueeze(1)
    held = values[torch.minimum(positions, until)]
    return torch.cat([held, (positions > until).unsqueeze(-1).to(held)], dim=-1)


@dataclass(frozen=True)
class Panel(TensorRecord):
    """Encoded series.

    Args:
        values: u of every step, missing ones filled.
        dynamic: inputs known before each step.
        observed: inputs known after each step.
        unknown: for each step, how many steps before it have unknown `observed` in its window.
        static: inputs of each series as a whole.
        begins: position of the first step of each series, and last the number of all steps.
    """

    values: Float64[Tensor, "steps"]
    dynamic: Float[Tensor, "steps dynamic"]
    observed: Float[Tensor, "steps observed"]
    unknown: Int64[Tensor, "steps"]
    static: Float[Tensor, "series static"]
    begins: Int64[Tensor, "bounds"]

    @classmethod
    def of(
        cls, stacked: Stacked, config: ModelConfig, frame: Frame, covariates: Covariates
    ) -> "Panel":
        """Encode series. The key is encoded once for each of them."""
        columns, begins = stacked.columns, stacked.begins
        known = covariates.read(columns, begins[:-1])
        filled = np.array(frame.transform(columns[config.target]))
        for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            filled[start:stop] = fill(filled[start:stop], frame.season)
        draws = generator(config.training.seed, "unknown")
        unknown = torch.randint(config.series.steps, (len(filled),), generator=draws)
        values, first = torch.from_numpy(filled), torch.from_numpy(begins)
        return cls(values, known.dynamic, known.observed, unknown, known.static, first)

    @property
    def width(self) -> int:
        """The number of dynamic and observed inputs of a step, with the indicator."""
        observed = self.observed.shape[1]
        return self.dynamic.shape[1] + observed + int(observed > 0)


HELD_BYTES = 2**28  # of network inputs: windows that take more are cut for each mini-batch
_CHUNK = 2**14  # windows that are cut at once
_FIT_VALUES = 2**23  # of the windows that the frame's scales are fitted to: 64 MB


@dataclass(frozen=True, kw_only=True)
class CutRows(Rows):
    """Windows that predict the steps at these positions. They are cut when they are indexed.

    `inputs` and `targets` are empty: only the positions are held.
    """

    panel: Panel
    frame: Frame
    at: Int64[Tensor, "windows"]

    @classmethod
    def of(cls, panel: Panel, frame: Frame, at: Int64[Tensor, "windows"]) -> "CutRows":
        """Windows of a panel."""
        width = frame.context * (frame.channels + panel.width) + panel.static.shape[1]
        nothing = panel.dynamic.new_empty(0)
        return cls(nothing.reshape(0, width), nothing, panel=panel, frame=frame, at=at)

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, index: Tensor | slice) -> Rows:
        return _cut(self.panel, self.frame, self.at[index])

    @property
    def num_bytes(self) -> int:
        """Memory that the inputs of all windows would take."""
        return 4 * len(self) * self.inputs.shape[1]

    def held(self) -> Rows:
        """All windows, cut."""
        cut = [self[start : start + _CHUNK] for start in range(0, len(self), _CHUNK)]
        return Rows.concatenate([Rows(self.inputs, self.targets), *cut])

    def held_if_small(self) -> Rows:
        """All windows cut if they take little memory, otherwise these."""
        return self.held() if self.num_bytes <= HELD_BYTES else self

    def thinned(self, most: int) -> Rows:
        """At most so many windows, evenly spread and cut, and no more than may be held."""
        room = HELD_BYTES // (4 * max(1, self.inputs.shape[1]))
        if len(self) <= (count := max(1, min(most, room))):
            return self.held()
        return CutRows.of(self.panel, self.frame, self.at[evenly_spread(len(self), count)]).held()


def fit_frame(panel: Panel, frame: Frame, at: Int64[Tensor, "rows"]) -> Frame:
    """The frame with scales fitted to these windows, or to as many as fit into memory.

    Raises:
        InvalidData: if nothing ever changes.
    """
    most = max(1, _FIT_VALUES // (frame.span + 1))
    chosen = at if len(at) <= most else at[evenly_spread(len(at), most)]
    return frame.fit(*_values(panel, frame, chosen)[:2])


def _values(
    panel: Panel, frame: Frame, at: Int64[Tensor, "windows"]
) -> tuple[Pasts, Float64[Tensor, "rows"], Int64[Tensor, "rows context"]]:
    """Each window's past and next value, and the positions of the steps after its context's."""
    positions = at.unsqueeze(1) + torch.arange(-frame.span, 1, device=at.device)
    values = panel.values[positions]
    return values[:, :-1], values[:, -1], positions[:, -frame.context :]


def _cut(panel: Panel, frame: Frame, at: Int64[Tensor, "rows"]) -> Rows:
    """Each step has the dynamic inputs of the next step, and its own observed ones."""
    past, following, after = _values(panel, frame, at)
    series = torch.searchsorted(panel.begins, at, right=True) - 1
    parts = [frame.read(past).inputs.float(), panel.dynamic[after]]
    if panel.observed.shape[1]:
        last = torch.maximum(at - 1 - panel.unknown[at], panel.begins[series])
        parts.append(hold_last(panel.observed, after - 1, last))
    inputs = torch.cat([torch.cat(parts, dim=-1).flatten(1), panel.static[series]], dim=-1)
    return Rows(inputs, frame.targets(past, following))
