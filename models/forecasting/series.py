"""Splits a table into series: grouped by key, in the order of time, absent steps inserted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.config import ForecastConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import present
from models.forecasting.spacing import Spacing

_FEW = 100  # steps that may be absent from a series with fewer rows


@dataclass(frozen=True)
class Series:
    """One series: its columns in the order of time, from the first to the last known value.

    Values in between may be missing (NaN). They are filled where windows read them
    (`models.forecasting.histories.filling`), and are never a target.

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
        InvalidData: if a series has a time twice, a time or key is missing, or all values are.
    """
    times = columns[str(config.time)]
    if not present(times).all():
        row = int((~present(times)).argmax())
        raise InvalidData(f"row {row} has no {config.time!r}: give each row a time", "/dataset")
    found = [_in_order(columns, rows, target, config) for rows in _groups(columns, config)]
    series = [one for one in found if len(one)]
    if not series:
        raise InvalidData(f"no row has a {target!r}", "/dataset")
    if spacing is None and any(len(one) > 1 for one in series):
        spacing = Spacing.fit([one.times for one in series])
    if spacing is None or not spacing.is_regular:
        return series
    return [_regular(one, target, str(config.time), spacing) for one in series]


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
        return [np.arange(len(columns[str(config.time)]))]
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


def _shortly(time: np.generic) -> str:
    """The time without zeros that say nothing."""
    if not isinstance(time, np.datetime64):
        return str(time)
    return str(np.datetime_as_string(np.array([time], "datetime64[us]"), unit="auto")[0])


def _in_order(columns: Columns, rows: np.ndarray, target: str, config: ForecastConfig) -> Series:
    times = columns[str(config.time)][rows]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    key = None if config.key is None else str(columns[config.key][rows[0]])
    if (twice := times[1:] == times[:-1]).any():
        where = "" if key is None else f" of the series {key!r}"
        raise InvalidData(
            f"two rows{where} are of {_shortly(times[int(twice.argmax())])}: a series has one "
            "value at a time; forecast.key names the column that distinguishes several series",
            "/forecast/key",
        )
    known = np.flatnonzero(present(columns[target][rows]))
    whole = slice(known[0], known[-1] + 1) if len(known) else slice(0, 0)
    rows = rows[whole]
    side = {name: values[rows] for name, values in columns.items()}
    return Series(key, side, times[whole], side[target])
