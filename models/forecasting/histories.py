"""Reads the series of a request for forecasts: their histories, and the rows of the steps ahead."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.config import ForecastConfig
from models.exceptions import InvalidInput
from models.features.clock import Clock
from models.features.columns import Columns, InputColumn
from models.features.targets import present
from models.forecasting.series import Series, shown, with_absent_steps, zone_advice
from models.forecasting.spacing import Spacing
from models.forecasting.windows import MOST_MISSING, Frame

INPUTS, FUTURE = "/inputs", "/future"


@dataclass(frozen=True)
class SeriesAsked:
    """A series of a request.

    Args:
        past: its steps from the first to the last known target.
        ahead: the rows after it, which tell the covariates of the steps ahead; there may be none.
    """

    past: Series
    ahead: Columns

    def rows_ahead(self, time: str) -> int:
        return len(self.ahead[time])


@dataclass(frozen=True)
class Histories:
    """Reads the rows of a request as series, in the order in which their keys first occur."""

    target: str
    config: ForecastConfig
    frame: Frame
    spacing: Spacing

    def read(self, columns: Columns) -> list[SeriesAsked]:
        """
        Raises:
            InvalidInput: if a series is not in the order of time, is too short, or has too few
                values that the model reads.
        """
        groups = group(columns, self.config.key)
        return [self._one(columns, rows, len(groups) > 1) for rows in groups]

    def _one(self, columns: Columns, rows: np.ndarray, is_one_of_many: bool) -> SeriesAsked:
        key = None if self.config.key is None else str(columns[self.config.key][rows[0]])
        checked = _Checked(self, key if is_one_of_many else None, rows)
        side: Columns = {name: values[rows] for name, values in columns.items()}
        checked.times(side)
        side = checked.stepwise(side)
        known = np.flatnonzero(present(side[self.target]))
        first, stop = (known[0], known[-1] + 1) if len(known) else (0, 0)
        past = {name: values[first:stop] for name, values in side.items()}
        ahead = {name: values[stop:] for name, values in side.items()}
        values = past[self.target].astype(np.float64)
        checked.values(values)
        return SeriesAsked(Series(key, past, past[str(self.config.time_column)], values), ahead)


@dataclass(frozen=True)
class _Checked:
    """Checks of one series, whose errors name it if there are several, and rows of the request."""

    reader: Histories
    name: str | None
    rows: np.ndarray

    def times(self, side: Columns) -> None:
        """Refuse rows without a time, and rows that are not later than those before them."""
        time = str(self.reader.config.time_column)
        times = side[time]
        if not present(times).all():
            raise self._wrong(f"row {self._row((~present(times)).argmax())} has no {time!r}")
        if (early := times[1:] <= times[:-1]).any():
            at = int(early.argmax()) + 1
            zone = self.reader.config.zone
            when = shown((times if zone is None else Clock.of(zone).local(times))[at])
            advice = zone_advice(times[at : at + 1], self.reader.config)
            if times[at] == times[at - 1]:
                raise self._wrong(
                    f"rows {self._row(at - 1)} and {self._row(at)} are both of {when}: a series "
                    "has one value at a time. Keep one of the rows, or add them up" + advice
                )
            raise self._wrong(
                f"row {self._row(at)} is of {when}, which is not after row "
                f"{self._row(at - 1)}: a history is one series in the order of time{advice}"
            )

    def stepwise(self, side: Columns) -> Columns:
        """The rows from the last uneven gap on, with a row for each step.

        Rows stay as they are if those of training were uneven.
        """
        reader, time = self.reader, str(self.reader.config.time_column)
        if not reader.spacing.is_regular:
            return side
        start = self._first_even(side[time])
        even = {name: values[start:] for name, values in side.items()}
        found = with_absent_steps(even, reader.target, time, reader.spacing)
        known = np.flatnonzero(present(found[reader.target]))
        if start and (not len(known) or known[-1] + 1 < reader.frame.span):
            raise self._wrong(
                f"row {self._row(start)} is not a whole number of steps after the row before it, "
                f"or too many: a step is {reader.spacing.describe()}, as in training, and this "
                f"model reads the last {reader.frame.span}"
            )
        return found

    def values(self, values: np.ndarray) -> None:
        """Refuse a history that is too short, has too many holes, or values without a logarithm."""
        reader, span = self.reader, self.reader.frame.span
        if len(values) < span:
            raise self._wrong(
                f"the history has {len(values)} rows; this model reads the last {span}"
            )
        read = values[-span:]
        if (missing := int(np.isnan(read).sum())) > MOST_MISSING * span:
            raise self._wrong(
                f"{missing} of the last {span} steps up to the last known {reader.target!r} have "
                f"no value; this model reads these steps and fills up to {MOST_MISSING:.0%} of them"
            )
        if reader.frame.observation.needs_positive and (read <= 0).any():
            lowest = float(np.nanmin(read))
            raise self._wrong(
                f"{reader.target!r} is {lowest:g} in the last {span} steps; this model forecasts "
                "logarithms and needs values above 0"
            )

    def _first_even(self, times: np.ndarray) -> int:
        """The first row from which on all gaps are whole numbers of steps, not too many in all."""
        spacing = self.reader.spacing
        gaps = spacing.gaps(times)
        absent = np.cumsum((gaps - 1)[::-1])[::-1]  # from each row on
        most = len(times) + self.reader.frame.span
        wrong = np.flatnonzero(~spacing.is_whole(times) | (absent > most))
        return int(wrong[-1]) + 1 if len(wrong) else 0

    def _row(self, at: int | np.integer) -> int:
        """The number in the request of a row of the series."""
        return int(self.rows[int(at)])

    def _wrong(self, message: str) -> InvalidInput:
        where = "" if self.name is None else f"the series {self.name!r}: "
        return InvalidInput(f"{where}{message}", INPUTS)


def group(columns: Columns, key: str | None) -> list[np.ndarray]:
    """The row numbers of each series, in the order in which their keys first occur.

    Raises:
        InvalidInput: if a row has no key.
    """
    if key is None:
        return [np.arange(len(next(iter(columns.values()))))]
    keys = columns[key]
    if not present(keys).all():
        row = int((~present(keys)).argmax())
        raise InvalidInput(f"row {row} has no {key!r}: give each row its series", INPUTS)
    _, first, member = np.unique(keys.astype(str), return_index=True, return_inverse=True)
    rows = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
    return [rows[i] for i in np.argsort(first)]


def check_future(
    asked: Sequence[SeriesAsked],
    future: Columns | None,
    needed: Sequence[InputColumn],
    horizon: int,
    time: str,
) -> list[Columns]:
    """The covariates of the steps ahead of each series: from its rows ahead, or from `future`.

    Raises:
        InvalidInput: unless each covariate has a value for every step, and from one place.
    """
    names = [column.name for column in needed]
    if not names:
        return [{} for _ in asked]
    if future is not None and any(one.rows_ahead(time) for one in asked):
        raise InvalidInput("the inputs have rows of the steps ahead, too: give either", FUTURE)
    if future is not None and len(asked) > 1:
        raise InvalidInput(
            f"is for one series, and the inputs have {len(asked)}: add the steps ahead to the "
            "inputs, as rows without a target after the last known one",
            FUTURE,
        )
    if future is not None:
        return [_of_future(future, names, horizon)]
    return [_of_rows(one, names, horizon, time) for one in asked]


def _of_future(future: Columns, names: Sequence[str], horizon: int) -> Columns:
    if missing := [name for name in names if name not in future]:
        raise InvalidInput(_needs(missing, horizon), FUTURE)
    for name in names:
        if len(future[name]) != horizon:
            raise InvalidInput(
                f"{name!r} has {len(future[name])} values for a horizon of {horizon}", FUTURE
            )
    return {name: future[name] for name in names}


def _of_rows(one: SeriesAsked, names: Sequence[str], horizon: int, time: str) -> Columns:
    rows = one.rows_ahead(time)
    of_series = "" if one.past.key is None else f" of {one.past.key!r}"
    if not rows:
        raise InvalidInput(_needs(names, horizon) + of_series, FUTURE)
    if rows < horizon:
        raise InvalidInput(
            f"{rows} steps{of_series} after the last known target have rows, for a horizon of "
            f"{horizon}: give as many, or ask for a horizon of {rows}",
            INPUTS,
        )
    return {name: one.ahead[name][:horizon] for name in names}


def _needs(names: Sequence[str], horizon: int) -> str:
    return (
        f"this model needs {', '.join(names)} of the {horizon} steps ahead: give an object of "
        "columns, or rows without a target after the last known one"
    )
