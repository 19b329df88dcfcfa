"""Predictions for bands: along a feature of a table, and along the time of a forecast."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from credence.client.arrow import Column
from credence.client.calls import Calls
from credence.client.frames import read_frame, select
from credence.client.operations import Operation
from credence.client.plots.files import read_file, whole_history, with_ends
from credence.client.plots.picture import Picture
from credence.client.plots.predictions import band, grid, typical_row
from credence.client.rows import inputs_of, predict_rows
from credence.types import PredictSettings, Version

POINTS = 60  # along a feature
SHOWN = 3  # as many known values as steps ahead, times this


def of_table(  # noqa: PLR0917
    calls: Calls,
    version: Version,
    rows: Any,
    along: str | None,
    level: float,
    options: PredictSettings,
) -> Operation[Picture]:
    """The band along a feature; see `Plots.plot_band`."""
    if version["task"] != "regression":
        raise ValueError(f"{version['model']} predicts no numbers: see plot_intervals")
    features = [feature["name"] for feature in version["features"]]
    if along is None:
        raise ValueError(f"name the feature of the axis: along={features[0]!r}")
    if isinstance(rows, str | Path):
        dataset, frame, options = yield from read_file(calls, version, rows, options)
        columns: Mapping[str, Column] = with_ends(frame.columns, dataset, along)
    else:
        columns = read_frame(rows, features).columns
    line = grid(version, select(columns, version["features"]), along, POINTS)
    prediction = yield from predict_rows(calls, version, line, options)
    names = (along, version["target"])
    return band(prediction, line[along], names, level=level, at=typical_row(line, along))


def of_forecast(  # noqa: PLR0917
    calls: Calls,
    version: Version,
    rows: Any,
    future: Any,
    level: float,
    options: PredictSettings,
) -> Operation[Picture]:
    """The band of the steps ahead after the newest known values; see `Plots.plot_band`."""
    if isinstance(rows, str | Path):
        dataset, frame, options = yield from read_file(calls, version, rows, options)
        frame = whole_history(rows, dataset, frame)
    else:
        frame = read_frame(rows, [feature["name"] for feature in inputs_of(version)])
    prediction = yield from predict_rows(calls, version, frame, options, future)
    table = prediction.table
    if "series" in table.column_names and len(set(table.to_pylist("series"))) > 1:
        raise ValueError("the history has several series: give the rows of one")
    column, zone = version["forecast"]["time"], version["forecast"].get("zone")
    if column is None or "time" not in table.column_names:
        raise ValueError(f"{version['model']} has no column of time to draw along")
    times, values = frame.columns[column].values, frame.columns[version["target"]].values
    pairs = [(at, v) for at, v in zip(times, values, strict=True) if v is not None]
    newest = pairs[-SHOWN * len(prediction) :]
    known = [_time(at, zone) for at, _ in newest], [value for _, value in newest]
    steps = [_time(at) for at in table.to_pylist("time")]
    return band(prediction, steps, (column, version["target"]), known, level)


def _time(at: Any, zone: str | None = None) -> Any:
    """A time in UTC without its zone, so that known values and steps share an axis; else `at`.

    Args:
        zone: of a time without an offset; UTC by default.
    """
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            message = f"the time {at!r} cannot be drawn: give times, or texts such as 2026-03-01"
            raise ValueError(message) from None
    if isinstance(at, datetime):
        if at.tzinfo is None and zone is not None:
            at = at.replace(tzinfo=ZoneInfo(zone))
        return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    return datetime.combine(at, time.min) if isinstance(at, date) else at
