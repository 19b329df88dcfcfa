"""Splits tables and requests into series: by key, in the order of time, absent steps inserted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from models.config import ForecastConfig
from models.exceptions import InvalidData, InvalidInput
from models.features.clock import Clock, second_times
from models.features.columns import Columns, InputColumn, select_rows
from models.features.targets import present
from models.forecasting.steps import Spacing
from models.forecasting.windows import MOST_MISSING, Frame

_NIGHT = np.timedelta64(4, "h")  # clocks are set back from 2:00 or 3:00
_SHOWN = 5  # rows in a message
_FEW = 100  # steps that may be absent from a series with fewer rows


@dataclass(frozen=True)
class Series:
    """One series: its columns in the order of time, from the first to the last known value.

    Values in between may be missing (NaN). They are filled where windows read them
    (`models.forecasting.windows`), and are never a target.

    Args:
        absent: how many of the missing values had no row.
    """

    key: str | None
    columns: Columns
    times: np.ndarray
    values: np.ndarray
    absent: int = 0

    def __len__(self) -> int:
        return len(self.values)

    def until(self, stop: int) -> "Series":
        """The first `stop` steps; none if `stop` is negative."""
        stop = max(stop, 0)
        columns = select_rows(self.columns, slice(stop))
        return replace(self, columns=columns, times=self.times[:stop], values=self.values[:stop])


def split_series(
    columns: Columns, target: str, config: ForecastConfig, spacing: Spacing | None = None
) -> list[Series]:
    """The series of a table, in the order of their keys. A series without any value is left out.

    Steps that are absent from a regular series are inserted as missing.

    Args:
        spacing: of the training data; None finds it.

    Raises:
        InvalidData: if a series has a time twice, a time or key is missing, all values are, or the
            clock skipped a time.
    """
    columns = in_utc(columns, config)
    times = columns[config.time_name]
    if not present(times).all():
        row = int((~present(times)).argmax())
        raise InvalidData(
            f"row {row} has no {config.time_name!r}: give each row a time", "/dataset"
        )
    try:
        groups = group(columns, config.key)
    except InvalidInput as error:
        raise InvalidData(error.message, "/dataset") from error
    if config.key is not None:
        keys = columns[config.key]
        groups.sort(key=lambda rows: str(keys[rows[0]]))
    found = [_in_order(columns, rows, target, config) for rows in groups]
    series = [one for one in found if len(one)]
    if not series:
        raise InvalidData(f"no row has a {target!r}", "/dataset")
    if spacing is None and any(len(one) > 1 for one in series):
        spacing = Spacing.fit([one.times for one in series], config.zone)
    if spacing is None or not spacing.is_regular:
        return series
    return [_regular(one, target, config.time_name, spacing) for one in series]


def in_utc(columns: Columns, config: ForecastConfig) -> Columns:
    """The columns with local times as instants in UTC. Without a time zone they are unchanged.

    Where the clock is set back, a series may have the same local time twice: the second is later.

    Raises:
        InvalidData: if the clock skipped a time.
    """
    name = config.time_name
    if config.zone is None or not np.issubdtype((given := columns[name]).dtype, np.datetime64):
        return columns
    clock = Clock.of(config.zone)
    nothing = np.zeros(len(given), dtype=bool)
    found, skipped = (given, nothing) if config.local_zone is None else clock.instants(given)
    if skipped.any():
        row = int(skipped.argmax())
        fixed = clock.standard(given[row])
        advice = f"; if these times ignore summer time, give the zone {fixed!r}" if fixed else ""
        raise InvalidData(
            f"{shown(given[row])} in {name!r} does not exist in {config.zone}, where the clock was "
            f"set forward over it: correct it, or give times with an offset from UTC{advice}",
            "/forecast/time",
            [row],
        )
    keys = None if config.key is None else columns[config.key]
    return {**columns, name: second_times(clock, found, keys)}


def with_absent_steps(columns: Columns, target: str, time: str, spacing: Spacing) -> Columns:
    """A regular series with a row for each step.

    A new row has no target. Its other values are those of the row before it.
    """
    times = columns[time]
    if not (absent := spacing.absent(times)):
        return columns
    rows = np.repeat(np.arange(len(times)), np.append(spacing.gaps(times), 1))
    is_new = np.append(False, rows[1:] == rows[:-1])
    every = {**select_rows(columns, rows)}
    every[target] = np.where(is_new, np.nan, every[target])
    steps = spacing.after(times[:1], len(times) + absent - 1)
    every[time][is_new] = np.append(times[:1], steps)[is_new]
    return every


def _regular(one: Series, target: str, time: str, spacing: Spacing) -> Series:
    """The series with its absent steps, unless times are uneven or too many steps are absent."""
    if not spacing.is_whole(one.times).all():
        return one
    if not 0 < (absent := spacing.absent(one.times)) <= max(len(one), _FEW):
        return one
    side = with_absent_steps(one.columns, target, time, spacing)
    return Series(one.key, side, side[time], side[target], absent)


def group(columns: Columns, key: str | None) -> list[np.ndarray]:
    """The row numbers of each series, in the order in which their keys first occur.

    Raises:
        InvalidInput: if a row has no key.
    """
    if key is None:
        return [np.arange(len(next(iter(columns.values()))))]
    if not (is_there := present(columns[key])).all():
        row = int((~is_there).argmax())
        raise InvalidInput(f"row {row} has no {key!r}: give each row its series", INPUTS)
    member = number_keys(columns[key])
    return np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])


def number_keys(keys: np.ndarray) -> Int64[np.ndarray, "rows"]:
    """The number of each row's key, in the order in which keys first occur."""
    found: dict[str, int] = {}
    numbers = [found.setdefault(str(key), len(found)) for key in keys.tolist()]
    return np.array(numbers, dtype=np.int64)


def shown(time: np.generic) -> str:
    """The time as text, without trailing zeros."""
    if not isinstance(time, np.datetime64):
        return str(time)
    text = np.datetime_as_string(np.array([time], "datetime64[us]"), unit="auto")[0]
    return str(text).replace("T", " ")


def _twice(
    times: np.ndarray, rows: np.ndarray, key: str | None, config: ForecastConfig
) -> InvalidData:
    """The error of a series that has two rows of one time."""
    repeated = np.flatnonzero(times[1:] == times[:-1])
    at, name = int(repeated[0]), config.time_column
    same = rows[times == times[at]].tolist()
    where = "the table" if key is None else f"{config.key} {key!r}"
    local = times[repeated] if config.zone is None else Clock.of(config.zone).local(times[repeated])
    more = len(set(local.tolist())) - 1
    others = f", and {more} more such time{'s' if more > 1 else ''}" if more else ""
    said = (
        f"{where} has {len(same)} rows of {name} {shown(local[0])}{others}: a series has one value "
        "at a time. Keep one of the rows, or add them up"
    )
    if key is None:
        said += "; if they are of several series, name the column of the series in forecast.key"
    said += zone_advice(local, config)
    return InvalidData(
        said, "/forecast/time" if key is not None else "/forecast/key", same[:_SHOWN]
    )


def zone_advice(times: np.ndarray, config: ForecastConfig) -> str:
    """What to do if the clock may have been set back at these times; else empty.

    Clocks are set back early on a Sunday. Times without hours are no such times.
    """
    if config.zone is not None or not np.issubdtype(times.dtype, np.datetime64):
        return ""
    days = times.astype("datetime64[D]")
    is_sunday, hours = (days.astype(np.int64) + 3) % 7 == 6, times - days  # day 0 was a Thursday
    if not (is_sunday & (hours > np.timedelta64(0)) & (hours < _NIGHT)).all():
        return ""
    return (
        "; if the clock was set back here, train with its time zone, which tells the two hours "
        f'apart: forecast.time {{"column": "{config.time_column}", "zone": "Europe/Berlin"}}'
    )


def _in_order(columns: Columns, rows: np.ndarray, target: str, config: ForecastConfig) -> Series:
    times = columns[config.time_name][rows]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    key = None if config.key is None else str(columns[config.key][rows[0]])
    if (times[1:] == times[:-1]).any():
        raise _twice(times, rows, key, config)
    known = np.flatnonzero(present(columns[target][rows]))
    whole = slice(known[0], known[-1] + 1) if len(known) else slice(0, 0)
    rows = rows[whole]
    side = select_rows(columns, rows)
    return Series(key, side, times[whole], side[target])


INPUTS, FUTURE = "/inputs", "/future"


@dataclass(frozen=True)
class RequestedSeries:
    """A series of a request.

    Args:
        past: its steps from the first to the last known target.
        ahead: the rows after it, which have the covariates of the steps ahead; there may be none.
    """

    past: Series
    ahead: Columns

    @property
    def rows_ahead(self) -> int:
        return len(next(iter(self.ahead.values())))


@dataclass(frozen=True)
class RequestReader:
    """Reads the rows of a request as series, in the order in which their keys first occur."""

    target: str
    config: ForecastConfig
    frame: Frame
    spacing: Spacing

    def read(self, columns: Columns) -> list[RequestedSeries]:
        """
        Raises:
            InvalidInput: if a series is not in the order of time, is too short, or has too few
                values that the model reads. It names the series if there are several.
        """
        groups = group(columns, self.config.key)
        requests = []
        for rows in groups:
            key = None if self.config.key is None else str(columns[self.config.key][rows[0]])
            side = select_rows(columns, rows)
            try:
                requests.append(self._read(key, side, rows))
            except InvalidInput as error:
                where = f"the series {key!r}: " if len(groups) > 1 else ""
                raise InvalidInput(f"{where}{error.message}", INPUTS) from None
        return requests

    def _read(self, key: str | None, side: Columns, rows: np.ndarray) -> RequestedSeries:
        """
        Args:
            rows: the numbers of the series' rows in the request, which errors name.
        """
        self._check_times(side[self.config.time_name], rows)
        side = self._stepwise(side, rows)
        known = np.flatnonzero(present(side[self.target]))
        first, stop = (known[0], known[-1] + 1) if len(known) else (0, 0)
        past = select_rows(side, slice(first, stop))
        ahead = select_rows(side, slice(stop, None))
        values = past[self.target].astype(np.float64)
        self._check_values(values)
        return RequestedSeries(Series(key, past, past[self.config.time_name], values), ahead)

    def _check_times(self, times: np.ndarray, rows: np.ndarray) -> None:
        """Refuse rows without a time, and rows that are not later than the row before."""
        if not (is_there := present(times)).all():
            row = rows[(~is_there).argmax()]
            raise InvalidInput(f"row {row} has no {self.config.time_name!r}")
        if not (early := times[1:] <= times[:-1]).any():
            return
        at, zone = int(early.argmax()) + 1, self.config.zone
        when = shown((times if zone is None else Clock.of(zone).local(times))[at])
        advice = zone_advice(times[at : at + 1], self.config)
        if times[at] == times[at - 1]:
            raise InvalidInput(
                f"rows {rows[at - 1]} and {rows[at]} are both of {when}: a series has one value at "
                f"a time. Keep one of the rows, or add them up{advice}"
            )
        raise InvalidInput(
            f"row {rows[at]} is of {when}, which is not after row {rows[at - 1]}: a history is one "
            f"series in the order of time{advice}"
        )

    def _stepwise(self, side: Columns, rows: np.ndarray) -> Columns:
        """The rows after the last uneven gap, with a row for each step.

        A gap is uneven if it is no whole number of steps, or if too many steps are absent after it.
        If the times of training were uneven, all rows are kept as they are.
        """
        time, spacing, span = self.config.time_name, self.spacing, self.frame.span
        if not spacing.is_regular:
            return side
        times = side[time]
        absent = np.cumsum((spacing.gaps(times) - 1)[::-1])[::-1]  # from each row on
        uneven = np.flatnonzero(~spacing.is_whole(times) | (absent > len(times) + span))
        start = int(uneven[-1]) + 1 if len(uneven) else 0
        even = select_rows(side, slice(start, None))
        complete = with_absent_steps(even, self.target, time, spacing)
        known = np.flatnonzero(present(complete[self.target]))
        if start and (not len(known) or known[-1] + 1 < span):
            raise InvalidInput(
                f"row {rows[start]} is not a whole number of steps after the row before it, or too "
                f"many: a step is {spacing.describe()}, as in training, and this model reads the "
                f"last {span}"
            )
        return complete

    def _check_values(self, values: np.ndarray) -> None:
        """Refuse a history that is too short, has too many holes, or values without a logarithm."""
        span = self.frame.span
        if len(values) < span:
            raise InvalidInput(
                f"the history has {len(values)} rows; this model reads the last {span}"
            )
        read = values[-span:]
        if (missing := int(np.isnan(read).sum())) > MOST_MISSING * span:
            raise InvalidInput(
                f"{missing} of the last {span} steps up to the last known {self.target!r} have "
                f"no value; this model reads these steps and fills up to {MOST_MISSING:.0%} of them"
            )
        if self.frame.observation.needs_positive and (read <= 0).any():
            raise InvalidInput(
                f"{self.target!r} is {np.nanmin(read):g} in the last {span} steps; this model "
                "forecasts logarithms and needs values above 0"
            )


def check_future(
    asked: Sequence[RequestedSeries],
    future: Columns | None,
    needed: Sequence[InputColumn],
    horizon: int,
) -> list[Columns]:
    """The covariates of the steps ahead of each series, from its rows ahead or from `future`.

    Raises:
        InvalidInput: unless each covariate has a value for every step, from one of the two places.
    """
    names = [column.name for column in needed]
    if not names:
        return [{} for _ in asked]
    if future is not None and any(request.rows_ahead for request in asked):
        raise InvalidInput("the inputs have rows of the steps ahead, too: give either", FUTURE)
    if future is not None and len(asked) > 1:
        raise InvalidInput(
            f"is for one series, and the inputs have {len(asked)}: add the steps ahead to the "
            "inputs, as rows without a target after the last known one",
            FUTURE,
        )
    if future is None:
        return [_of_rows(request, names, horizon) for request in asked]
    if missing := [name for name in names if name not in future]:
        raise InvalidInput(_needs(missing, horizon), FUTURE)
    for name in names:
        if len(future[name]) != horizon:
            raise InvalidInput(
                f"{name!r} has {len(future[name])} values for a horizon of {horizon}", FUTURE
            )
    return [{name: future[name] for name in names}]


def _of_rows(request: RequestedSeries, names: Sequence[str], horizon: int) -> Columns:
    rows = request.rows_ahead
    of_series = "" if request.past.key is None else f" of {request.past.key!r}"
    if not rows:
        raise InvalidInput(_needs(names, horizon) + of_series, FUTURE)
    if rows < horizon:
        raise InvalidInput(
            f"{rows} steps{of_series} after the last known target have rows, for a horizon of "
            f"{horizon}: give as many, or ask for a horizon of {rows}",
            INPUTS,
        )
    return {name: request.ahead[name][:horizon] for name in names}


def _needs(names: Sequence[str], horizon: int) -> str:
    return (
        f"this model needs {', '.join(names)} of the {horizon} steps ahead: give an object of "
        "columns, or rows without a target after the last known one"
    )
