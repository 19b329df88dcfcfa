"""Rows of the steps ahead of a forecast, filled in for the page *Predict*."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from core.database.schema import Json
from models.exceptions import InvalidData
from models.forecasting.steps import Spacing


def known_ahead(about: Json) -> list[str]:
    """The features whose values a forecast needs for the steps ahead, in the version's order."""
    forecast = about.get("forecast")
    if forecast is None:
        return []
    read = {forecast["time"], forecast["key"], *(forecast["static"] or ()), *forecast["past"]}
    return [one["name"] for one in about["features"] or () if one["name"] not in read]


def takes_local(forecast: Json) -> bool:
    """Whether the rows of the training data have local times of a zone."""
    return forecast.get("zone") is not None and not forecast["utc"]


def future_rows(history: Sequence[Json], about: Json) -> list[Json]:
    """A row per step after the history of one series, each with the values of a season before.

    None if there is nothing to know ahead, or the history does not say how long a step is. Rows
    without a target at the end of the history count as steps ahead that it has already.
    """
    names = known_ahead(about)
    if not names or not history:
        return []
    forecast = about["forecast"]
    time, key = forecast["time"], forecast["key"]
    rows = sorted(history, key=lambda row: _as_time(row[time]))
    known = [i for i, row in enumerate(rows) if row.get(about["target"]) is not None]
    ahead = forecast["horizon"] - (len(rows) - 1 - known[-1] if known else 0)
    times = np.array([_as_time(row[time]) for row in rows])
    try:
        after = Spacing.fit([times]).after(times, max(0, ahead))
    except InvalidData:
        return []
    before = _a_season_before(rows, forecast["season"], len(after))
    told = [*([] if key is None else [key]), *(forecast["static"] or ()), *names]
    return [
        {time: _as_text(when, "" if takes_local(forecast) else "Z")}
        | {name: row[name] for name in told}
        for when, row in zip(after, before, strict=True)
    ]


def _a_season_before(rows: Sequence[Json], season: int | Sequence[int], count: int) -> list[Json]:
    """The row of the same place in the last season for each step; the last one if it is shorter."""
    one = season if isinstance(season, int) else season[0]
    last = rows[-one:] if len(rows) >= one else rows[-1:]
    return [last[step % len(last)] for step in range(count)]


def _as_time(value: Any) -> Any:
    """A time of a row in JSON as numpy has it."""
    if not isinstance(value, str):
        return value
    return np.datetime64(datetime.fromisoformat(value).replace(tzinfo=None), "us")


def _as_text(time: Any, zone: str) -> Any:
    """A time as in a row in JSON."""
    if not isinstance(time, np.datetime64):
        return float(time)
    return f"{np.datetime_as_string(time, unit='s')}{zone}"
