"""Splits a table into series: grouped by key, in the order of time, and checked."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.config import ForecastConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import present


@dataclass(frozen=True)
class Series:
    """One series: its columns in the order of time, from the first to the last known value.

    Values in between may be missing (NaN): windows that would contain one are left out.
    """

    key: str | None
    columns: Columns
    times: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def until(self, stop: int) -> "Series":
        """The first `stop` steps; none if `stop` is negative."""
        stop = max(stop, 0)
        columns = {name: column[:stop] for name, column in self.columns.items()}
        return Series(self.key, columns, self.times[:stop], self.values[:stop])


def split_series(columns: Columns, target: str, config: ForecastConfig) -> list[Series]:
    """The series of a table, in the order of their keys; those without any value are left out.

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
    return series


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


def _in_order(columns: Columns, rows: np.ndarray, target: str, config: ForecastConfig) -> Series:
    times = columns[str(config.time)][rows]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    key = None if config.key is None else str(columns[config.key][rows[0]])
    if (twice := times[1:] == times[:-1]).any():
        where = "" if key is None else f" of the series {key!r}"
        raise InvalidData(
            f"two rows{where} are of {times[int(twice.argmax())]}: a series has one value at a "
            "time; forecast.key names the column that distinguishes several series",
            "/forecast/key",
        )
    known = np.flatnonzero(present(columns[target][rows]))
    whole = slice(known[0], known[-1] + 1) if len(known) else slice(0, 0)
    rows = rows[whole]
    side = {name: values[rows] for name, values in columns.items()}
    return Series(key, side, times[whole], side[target])
