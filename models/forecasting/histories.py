"""Histories: what a forecast reads, encoded: the past of each series, and what is known ahead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from models.features.columns import Columns, join_rows, select_rows
from models.forecasting.panel import Covariates, hold_last
from models.forecasting.series import Series
from models.forecasting.totals.series_groups import NO_GROUPS, Groups
from models.forecasting.windows import Frame, Pasts, fill
from models.prediction.outputs.reasons import Reason

# Float64 copies during a step. Of the past: the old and the new one, values and changes, both also
# scaled. Of a network's row: as read, clamped, the sequence, the row, and the row in float32.
_PASTS, _ROWS = 6, 5
_CHANNELS = 4  # at most: the value of a step, and its changes from three seasons


@dataclass(frozen=True)
class History:
    """The pasts of some forecasts, in u, and the inputs that are known ahead. A row is a forecast.

    Args:
        dynamic: inputs known ahead. Step t of a window has those of step t + 1.
        static: inputs of the series as a whole.
        known: u of up to the last 1,000 steps or more, which classical members read; NaN where a
            value is missing, and before the history begins.
        times: of the steps ahead, row after row; None in back-tests.
        series: the key of each row; None without a key.
        newest: the newest values of each row, to be scored; None unless asked for.
        reasons: of each row, why its past is unlike those of training; () if it was not checked.
        regressors: what classical members read beside it, of the same steps and of the steps
            ahead; None if they read nothing else.
        groups: the sums over series that a request asks for.
    """

    past: Pasts
    dynamic: Float[Tensor, "rows steps dynamic"]
    static: Float[Tensor, "rows static"]
    horizon: int
    known: Float64[Tensor, "histories known"]
    times: np.ndarray | None = None
    series: tuple[str, ...] | None = None
    reasons: tuple[tuple[Reason, ...], ...] = ()
    newest: "Newest | None" = None
    regressors: Float64[Tensor, "histories all regressors"] | None = None
    groups: Groups = NO_GROUPS

    def __len__(self) -> int:
        """Number of predicted steps of all rows."""
        return len(self.past) * self.horizon

    def __getitem__(self, steps: slice) -> "History":
        """The forecasts that these steps belong to; the slice must consist of whole forecasts."""
        ends = (steps.start, steps.stop)
        return self.rows(slice(*(None if end is None else end // self.horizon for end in ends)))

    def rows(self, rows: slice) -> "History":
        """Some of the forecasts."""
        ahead = _times(rows, self.horizon)
        return replace(
            self,
            past=self.past[rows],
            dynamic=self.dynamic[rows],
            static=self.static[rows],
            known=self.known[rows],
            times=None if self.times is None else self.times[ahead],
            series=None if self.series is None else self.series[rows],
            reasons=self.reasons[rows],
            newest=None if self.newest is None else self.newest.of_rows(rows),
            regressors=None if self.regressors is None else self.regressors[rows],
        )

    @property
    def bytes_per_path(self) -> int:
        """Memory that a path of one row needs during a step."""
        context = self.dynamic.shape[1] - self.horizon + 1
        row = context * (_CHANNELS + self.dynamic.shape[2]) + self.static.shape[1]
        return 8 * (_PASTS * self.past.shape[1] + _ROWS * row)

    def split(self, rows: int) -> list["History"]:
        """Cut into parts of `rows` rows; the last part may have fewer."""
        starts = range(0, max(1, len(self.past)), rows)
        return [self.rows(slice(start, start + rows)) for start in starts]

    def to(self, device: str | torch.device) -> "History":
        past, dynamic, static = (p.to(device) for p in (self.past, self.dynamic, self.static))
        return replace(self, past=past, dynamic=dynamic, static=static)


@dataclass(frozen=True)
class Newest:
    """The newest values of several series, `count` of each, to be scored by `unusual`.

    Args:
        history: from which each value is predicted, series after series.
        leads: how many steps ahead each value is; 0 if it is not scored.
    """

    count: int
    history: History
    leads: Int[Tensor, "values"]
    values: Float64[Tensor, "values"]
    times: np.ndarray

    def of_rows(self, rows: slice) -> "Newest":
        """Those of some series."""
        of = _times(rows, self.count)
        return replace(
            self,
            history=self.history.rows(of),
            leads=self.leads[of],
            values=self.values[of],
            times=self.times[of],
        )


def _times(rows: slice, factor: int) -> slice:
    """The slice of places, where each row takes `factor` of them."""
    return slice(*(None if end is None else end * factor for end in (rows.start, rows.stop)))


_MOST_KNOWN = 1_000  # steps of a history that classical members read; older ones tell little more
_SEASONS_KNOWN = 3  # of the longest season: at least these


@dataclass(frozen=True)
class HistoryEncoder:
    """Encodes pasts of series and what is known of their steps ahead."""

    covariates: Covariates
    frame: Frame

    def encode(
        self,
        pasts: Sequence[Series],
        ahead: Sequence[Columns],
        horizon: int,
        *,
        regressors: bool = False,
    ) -> History:
        """One history per past: its last window, missing values filled, and what is known ahead.

        Args:
            ahead: all columns of the `horizon` steps after each past.
            regressors: whether to encode what classical members read beside the values.

        Raises:
            InvalidInput: if the holidays of a step are not known.
        """
        context = self.frame.context
        columns, lengths = self._columns(pasts, ahead, context)
        known = self.covariates.read(columns, np.cumsum(lengths) - lengths)
        dynamic = known.dynamic.unflatten(0, (len(pasts), -1))
        dynamic = dynamic[:, 1:]  # each step of a window has those of the step after it
        if known.observed.shape[1]:
            steps = torch.arange(context + horizon - 1).unsqueeze(0)
            last = torch.tensor([context - 1])
            each = known.observed.unflatten(0, (len(pasts), -1))
            marked = torch.cat([hold_last(one, steps, last) for one in each])
            dynamic = torch.cat([dynamic, marked], dim=-1)
        windows = [fill(self.frame.transform(past.values), self.frame.season) for past in pasts]
        read = np.stack([window[-self.frame.span :] for window in windows])
        return History(
            torch.from_numpy(read),
            dynamic,
            known.static,
            horizon,
            aligned([self._known(past) for past in pasts]),
            regressors=self._regressors(pasts, ahead) if regressors else None,
        )

    def blank(self, horizon: int) -> History:
        """A flat past."""
        past = torch.zeros(1, self.frame.span, dtype=torch.float64)
        dynamic = torch.zeros(1, self.frame.context - 1 + horizon, self.covariates.dynamic_width)
        static = torch.zeros(1, self.covariates.static_width)
        return History(past, dynamic, static, horizon, past)

    def _columns(
        self, pasts: Sequence[Series], ahead: Sequence[Columns], steps: int
    ) -> tuple[Columns, np.ndarray]:
        """The last steps of each past with those ahead, and how many these are of each."""
        names = [feature.name for feature in self.covariates.encoder.features]
        parts: list[Columns] = []
        for one, after in zip(pasts, ahead, strict=True):
            before = select_rows(one.columns, slice(max(0, len(one) - steps), None))
            parts.append(join_rows([{name: before[name] for name in names}, after]))
        return join_rows(parts), np.array([len(part[names[0]]) for part in parts])

    @property
    def _most_known(self) -> int:
        """The most steps of a history that classical members read."""
        return max(_MOST_KNOWN, _SEASONS_KNOWN * self.frame.season)

    def _known(self, one: Series) -> Float64[Tensor, "1 known"]:
        """u of the latest steps; NaN where a value is missing or has no logarithm."""
        values = one.values[-self._most_known :]
        if self.frame.observation.needs_positive:
            values = np.where(values > 0, values, np.nan)
        return torch.from_numpy(self.frame.transform(values)).unsqueeze(0)

    def _regressors(self, pasts: Sequence[Series], ahead: Sequence[Columns]) -> Tensor | None:
        """Covariates and holidays of the latest steps and of those ahead; None without any.

        A row begins with zeros if its series is shorter than others.
        """
        columns, lengths = self._columns(pasts, ahead, self._most_known)
        read = self.covariates.changing(columns)
        if not read.shape[1]:
            return None
        each = read.double().split(lengths.tolist())
        return aligned([part.unsqueeze(0) for part in each], 0.0)


def aligned(parts: Sequence[Tensor], before: float = math.nan) -> Tensor:
    """Histories stacked as rows that end at the same step. Shorter ones begin with `before`.

    Args:
        parts: each has one row, of steps or of steps with several numbers.
    """
    steps = max(part.shape[1] for part in parts)
    others = (0, 0) * (parts[0].dim() - 2)
    padded = [pad(part, (*others, steps - part.shape[1], 0), value=before) for part in parts]
    return torch.cat(padded)
