"""The steps of all series one after the other: what windows are cut from.

A panel holds each step once, so that a million windows of a hundred steps take no more memory than
the series themselves.

Covariates that are known only in the past have their values up to a known step, and hold the last
one from there on. A window that predicts the step h ahead of a forecast's origin has h − 1 steps
whose covariates nobody knows: they hold the last known values, and an indicator tells them. Windows
of training get such ends, too: h of each window is drawn once, evenly from 1 to the horizon. So the
network learns p(change of the next step | the series so far, covariates up to the origin), which is
what every step of a path asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from models.config import ForecastConfig, ModelConfig
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows, evenly_spread
from models.forecasting.features import known_of
from models.forecasting.holidays import Holidays
from models.forecasting.series import Series
from models.forecasting.spacing import Spacing
from models.forecasting.windows import MOST_MISSING, Frame, Pasts, fill
from models.randomness import generator
from models.tensors import TensorRecord


@dataclass(frozen=True)
class Stacked:
    """The columns of series one after the other.

    Args:
        begins: as of a panel.
        step: the number of each row's step within its series.
        series: the number of each row's series.
    """

    columns: Columns
    begins: Int64[np.ndarray, "bounds"]
    step: Int64[np.ndarray, "rows"]
    series: Int64[np.ndarray, "rows"]

    @classmethod
    def of(cls, series: Sequence[Series]) -> "Stacked":
        columns = {
            name: np.concatenate([one.columns[name] for one in series])
            for name in series[0].columns
        }
        lengths = np.array([len(one) for one in series])
        begins = np.concatenate([[0], np.cumsum(lengths)])
        number = np.repeat(np.arange(len(series)), lengths)
        return cls(columns, begins, np.arange(begins[-1]) - begins[number], number)

    def rows(self, chosen: np.ndarray) -> Columns:
        """The columns of these rows."""
        return {name: column[chosen] for name, column in self.columns.items()}

    def between(self, firsts: np.ndarray, stops: np.ndarray) -> Bool[np.ndarray, "rows"]:
        """Whether each row is of a step from its series' first to before its stop."""
        return (self.step >= firsts[self.series]) & (self.step < stops[self.series])

    def whole_windows(self, values: np.ndarray, span: int) -> Bool[np.ndarray, "rows"]:
        """Whether each row is known and has `span` steps of its series before it that can be read.

        The last of them is known, and not too many are missing
        (`models.forecasting.windows`).
        """
        missing = np.isnan(values)
        before = np.concatenate([[0], np.cumsum(missing)])
        has_past = (self.step >= span) & ~missing & ~np.concatenate([[True], missing[:-1]])
        start = np.where(has_past, np.arange(len(values)) - span, 0)
        return has_past & (before[:-1] - before[start] <= MOST_MISSING * span)


def draw_unknown(rows: int, horizon: int, seed: int) -> Int64[Tensor, "rows"]:
    """The number of steps without known covariates at the end of the window before each step."""
    return torch.randint(horizon, (rows,), generator=generator(seed, "unknown"))


def held(
    values: Float[Tensor, "steps observed"],
    positions: Int64[Tensor, "rows context"],
    last: Int64[Tensor, "rows"],
) -> Float[Tensor, "rows context marked"]:
    """The values at these positions, after the last known one held, and the indicator of that."""
    until = last.unsqueeze(1)
    found = values[torch.minimum(positions, until)]
    return torch.cat([found, (positions > until).unsqueeze(-1).to(found)], dim=-1)


def continued(
    values: Float[Tensor, "context observed"], horizon: int
) -> Float[Tensor, "steps marked"]:
    """The values of a forecast's steps: those of the context, then held and marked as that."""
    ahead = values[-1:].expand(horizon - 1, -1)
    marks = torch.arange(len(values) + horizon - 1) >= len(values)
    return torch.cat([torch.cat([values, ahead]), marks.unsqueeze(1).to(values)], dim=-1)


@dataclass(frozen=True)
class Panel(TensorRecord):
    """Encoded series.

    Args:
        values: u of every step, the missing ones filled.
        dynamic: inputs known before each step.
        observed: inputs known after each step.
        unknown: the steps at the end of the window before each step whose `observed` are not known.
        static: inputs of each series as a whole.
        begins: position of the first step of each series, and after the last one the number of all
            steps.
    """

    values: Float64[Tensor, "steps"]
    dynamic: Float[Tensor, "steps dynamic"]
    observed: Float[Tensor, "steps observed"]
    unknown: Int64[Tensor, "steps"]
    static: Float[Tensor, "series static"]
    begins: Int64[Tensor, "bounds"]

    @classmethod
    def of(
        cls,
        stacked: Stacked,
        config: ModelConfig,
        frame: Frame,
        encoder: FeatureEncoder,
        *,
        spacing: Spacing,
        holidays: Holidays | None = None,
    ) -> "Panel":
        """Encode series; the key once for each of them."""
        columns, begins = stacked.columns, stacked.begins
        forecast = config.forecast or ForecastConfig()
        known = known_of(encoder, config, columns, begins[:-1])
        known = known.with_holidays(holidays, columns[str(forecast.time_column)], spacing)
        filled = np.array(frame.transform(columns[config.target]))
        for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            filled[start:stop] = fill(filled[start:stop], frame.season)
        values = torch.from_numpy(filled)
        unknown = draw_unknown(len(values), int(forecast.horizon or 1), config.training.seed)
        first = torch.from_numpy(begins)
        return cls(values, known.dynamic, known.observed, unknown, known.static, first)

    @property
    def width(self) -> int:
        """The number of inputs of a step beside the series' own; observed ones are marked."""
        observed = self.observed.shape[1]
        return self.dynamic.shape[1] + observed + int(observed > 0)

    def series_of(self, at: Int64[Tensor, "rows"]) -> Int64[Tensor, "rows"]:
        """The number of the series in which each position lies."""
        return torch.searchsorted(self.begins, at, right=True) - 1


HELD_BYTES = 2**28  # of network inputs: windows that take more are cut for each mini-batch
_CHUNK = 2**14  # windows that are cut at once
_FIT_VALUES = 2**23  # of the windows that the frame's scales are fitted to: 64 MB


@dataclass(frozen=True, kw_only=True)
class CutRows(Rows):
    """Windows that predict the steps at these positions. An index cuts them.

    `inputs` and `targets` are empty: nothing is held but the positions.
    """

    panel: Panel
    frame: Frame
    at: Int64[Tensor, "windows"]

    @classmethod
    def of(cls, panel: Panel, frame: Frame, at: Int64[Tensor, "windows"]) -> "CutRows":
        """Windows of a panel, none of them cut."""
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
        """At most so many windows, and no more than may be held, evenly spread and cut."""
        room = HELD_BYTES // (4 * max(1, self.inputs.shape[1]))
        if len(self) <= (count := max(1, min(most, room))):
            return self.held()
        return CutRows.of(self.panel, self.frame, self.at[evenly_spread(len(self), count)]).held()


def fit_frame(panel: Panel, frame: Frame, at: Int64[Tensor, "rows"]) -> Frame:
    """The frame with the scales of these windows, or of as many as fit into memory.

    Raises:
        InvalidData: if nothing ever changes.
    """
    most = max(1, _FIT_VALUES // (frame.span + 1))
    chosen = at if len(at) <= most else at[evenly_spread(len(at), most)]
    return frame.fit(*_values(panel, frame, chosen)[:2])


def _values(
    panel: Panel, frame: Frame, at: Int64[Tensor, "windows"]
) -> tuple[Pasts, Float64[Tensor, "rows"], Int64[Tensor, "rows context"]]:
    """The past of each window, the value that follows, and the positions after the context's."""
    positions = at.unsqueeze(1) + torch.arange(-frame.span, 1, device=at.device)
    values = panel.values[positions]
    return values[:, :-1], values[:, -1], positions[:, -frame.context :]


def _cut(panel: Panel, frame: Frame, at: Int64[Tensor, "rows"]) -> Rows:
    """Each step of a window has the inputs known before the step after it, and its own observed."""
    past, following, after = _values(panel, frame, at)
    series = panel.series_of(at)
    parts = [frame.read(past).inputs.float(), panel.dynamic[after]]
    if panel.observed.shape[1]:
        last = torch.maximum(at - 1 - panel.unknown[at], panel.begins[series])
        parts.append(held(panel.observed, after - 1, last))
    inputs = torch.cat([torch.cat(parts, dim=-1).flatten(1), panel.static[series]], dim=-1)
    return Rows(inputs, frame.targets(past, following))
