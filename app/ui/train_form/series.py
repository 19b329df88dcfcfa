"""What the form proposes for series: the column of the time, and the one that names the series."""

from collections.abc import Mapping

import numpy as np

from core.context import Context
from core.database.schema import Json
from core.datasets.dataset import Dataset
from core.names import dotted_paths
from models.features.columns import Columns
from models.features.targets import present

MOST_ROWS = 1_000_000  # that are read for a proposal
MOST_COLUMNS = 20
_SHORTEST = 2  # rows of a series, on average: a column of identifiers tells no series apart


def with_series(context: Context, dataset: Dataset, wanted: Json) -> Json:
    """The request with the time and the key of its series, where they are missing and clear."""
    given, forecast = dotted_paths(wanted), wanted.get("forecast") or {}
    if not isinstance(forecast, dict):
        return wanted
    if wanted.get("task") != "forecasting" or given.get("forecast.key") is not None:
        return wanted
    time = given.get("forecast.time.column") or given.get("forecast.time")
    time = time or _only_time(dataset, wanted)
    if time not in {column.name for column in dataset.columns}:
        return wanted
    found = {"time": forecast.get("time") or time}
    if (key := _key(context, dataset, str(time), str(wanted["target"]))) is not None:
        found["key"] = key
    return wanted | {"forecast": forecast | found}


def _only_time(dataset: Dataset, wanted: Json) -> str | None:
    times = [c.name for c in dataset.columns if c.type == "datetime" and c.name != wanted["target"]]
    return times[0] if len(times) == 1 else None


def _key(context: Context, dataset: Dataset, time: str, target: str) -> str | None:
    names = [
        c.name for c in dataset.columns if c.type == "category" and c.name not in (time, target)
    ]
    if not names or dataset.rows > MOST_ROWS:
        return None
    names = names[:MOST_COLUMNS]
    columns = context.datasets.columns(dataset.id, [time, *names])
    return find_key(columns[time], {name: columns[name] for name in names})


def find_key(times: np.ndarray, columns: Columns | Mapping[str, np.ndarray]) -> str | None:
    """The column of the fewest levels with which no time repeats within a level.

    None if no time repeats at all: then there is one series.
    """
    if len(np.unique(times)) == len(times):
        return None
    found = []
    for name, values in columns.items():
        levels, numbers = np.unique(values.astype(str), return_inverse=True)
        is_clear = present(values).all() and _SHORTEST * len(levels) <= len(values)
        if is_clear and len(np.unique(_pairs(times, numbers))) == len(times):
            found.append((len(levels), name))
    return min(found)[1] if found else None


def _pairs(times: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """A number for each time and level."""
    _, of_time = np.unique(times, return_inverse=True)
    return of_time.astype(np.int64) * (int(numbers.max()) + 1) + numbers
