"""Splits a table into series: grouped by key, in the order of time, absent steps inserted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.config import ForecastConfig
from models.exceptions import InvalidData
from models.features.clock import Clock, second_times
from models.features.columns import Columns
from models.features.targets import present
from models.forecasting.spacing import Spacing

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

    def columns_of(self, names: Sequence[str], last: int) -> Columns:
        """Some columns of the last steps."""
        return {name: self.columns[name][max(0, len(self) - last) :] for name in names}

    def until(self, stop: int) -> "Series":
        """The first `stop` steps; none if `stop` is negative."""
        stop = max(stop, 0)
        columns = {name: column[:stop] for name, column in self.columns.items()}
        return replace(self, columns=columns, times=self.times[:stop], values=self.values[:stop])


def split_series(
    columns: Columns, target: str, config: ForecastConfig, spacing: Spacing | None = None
) -> list[Series]:
    """The series of a table, in the order of their keys; those without any value are left out.

    Steps that are absent from a regular series are inserted as missing.

    Args:
        spacing: of the training data; None finds it.

    Raises:
        InvalidData: if a series has a time twice, a time or key is missing, all values are, or the
            clock skipped a time.
    """
    columns = in_utc(columns, config)
    times = columns[str(config.time_column)]
    if not present(times).all():
        row = int((~present(times)).argmax())
        raise InvalidData(
            f"row {row} has no {config.time_column!r}: give each row a time", "/dataset"
        )
    found = [_in_order(columns, rows, target, config) for rows in _groups(columns, config)]
    series = [one for one in found if len(one)]
    if not series:
        raise InvalidData(f"no row has a {target!r}", "/dataset")
    if spacing is None and any(len(one) > 1 for one in series):
        spacing = Spacing.fit([one.times for one in series], config.zone)
    if spacing is None or not spacing.is_regular:
        return series
    return [_regular(one, target, str(config.time_column), spacing) for one in series]


def in_utc(columns: Columns, config: ForecastConfig) -> Columns:
    """The columns with local times as instants in UTC; as they are without a time zone.

    Of a time that comes twice in a series where the clock is set back, the second is later.

    Raises:
        InvalidData: if the clock skipped a time.
    """
    name = str(config.time_column)
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
    """A regular series with a row for each step: a new one has no target, and else what the row
    before it has.
    """
    times = columns[time]
    if not (absent := spacing.absent(times)):
        return columns
    rows = np.repeat(np.arange(len(times)), np.append(spacing.gaps(times), 1))
    is_new = np.append(False, rows[1:] == rows[:-1])
    every = {name: values[rows] for name, values in columns.items()}
    every[target] = np.where(is_new, np.nan, every[target])
    steps = spacing.after(times[:1], len(times) + absent - 1)
    every[time][is_new] = np.append(times[:1], steps)[is_new]
    return every


def _regular(one: Series, target: str, time: str, spacing: Spacing) -> Series:
    """The series with its absent steps, unless its rows are no steps, or fewer than are absent."""
    if not spacing.is_whole(one.times).all():
        return one
    if not 0 < (absent := spacing.absent(one.times)) <= max(len(one), _FEW):
        return one
    side = with_absent_steps(one.columns, target, time, spacing)
    return Series(one.key, side, side[time], side[target], absent)


def _groups(columns: Columns, config: ForecastConfig) -> Sequence[np.ndarray]:
    """Row numbers per series."""
    if config.key is None:
        return [np.arange(len(columns[str(config.time_column)]))]
    keys = columns[config.key]
    if not present(keys).all():
        row = int((~present(keys)).argmax())
        raise InvalidData(f"row {row} has no {config.key!r}: give each row its series", "/dataset")
    member = number_keys(keys)
    return np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])


def number_keys(keys: np.ndarray) -> np.ndarray:
    """The number of each row's key among the sorted keys."""
    found: dict[str, int] = {}
    first = np.array([found.setdefault(str(key), len(found)) for key in keys.tolist()])
    place = np.empty(len(found), dtype=np.int64)
    place[np.argsort(np.array(list(found)), kind="stable")] = np.arange(len(found))
    return place[first]


def shown(time: np.generic) -> str:
    """The time without zeros that say nothing."""
    if not isinstance(time, np.datetime64):
        return str(time)
    text = np.datetime_as_string(np.array([time], "datetime64[us]"), unit="auto")[0]
    return str(text).replace("T", " ")


def _twice(
    times: np.ndarray, rows: np.ndarray, key: str | None, config: ForecastConfig
) -> InvalidData:
    """The error of a series with rows of one time, in the order of time."""
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
    """What to do if the clock was set back at these times; nothing if it surely was not."""
    if config.zone is not None or not _is_set_back(times):
        return ""
    return (
        "; if the clock was set back here, train with its time zone, which tells the two hours "
        f'apart: forecast.time {{"column": "{config.time_column}", "zone": "Europe/Berlin"}}'
    )


def _is_set_back(times: np.ndarray) -> bool:
    """Whether all times are in the night of a Sunday, in which clocks are set back; no days."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return False
    days = times.astype("datetime64[D]")
    of_sunday, hours = (days.astype(np.int64) + 3) % 7 == 6, times - days  # day 0 was a Thursday
    return bool((of_sunday & (hours > np.timedelta64(0)) & (hours < _NIGHT)).all())


def _in_order(columns: Columns, rows: np.ndarray, target: str, config: ForecastConfig) -> Series:
    times = columns[str(config.time_column)][rows]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    key = None if config.key is None else str(columns[config.key][rows[0]])
    if (times[1:] == times[:-1]).any():
        raise _twice(times, rows, key, config)
    known = np.flatnonzero(present(columns[target][rows]))
    whole = slice(known[0], known[-1] + 1) if len(known) else slice(0, 0)
    rows = rows[whole]
    side = {name: values[rows] for name, values in columns.items()}
    return Series(key, side, times[whole], side[target])
