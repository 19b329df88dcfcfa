"""Checks of the history and the future covariates in a request for a forecast."""

from collections.abc import Sequence

import numpy as np

from models.config import ForecastConfig
from models.exceptions import InvalidInput
from models.features.columns import Columns, InputColumn
from models.features.targets import present
from models.forecasting.series import Series
from models.forecasting.spacing import Spacing
from models.forecasting.windows import Frame

INPUTS, FUTURE = "/inputs", "/future"


def check_history(
    columns: Columns, target: str, config: ForecastConfig, frame: Frame, spacing: Spacing
) -> Series:
    """The series in the columns.

    Raises:
        InvalidInput: if there are several series, or the series is not in the order of time, is
            too short, or lacks a value that the model reads.
    """
    time = str(config.time)
    times, values = columns[time], columns[target].astype(np.float64)
    _check_times(times, time)
    key = _check_key(columns, config)
    if len(values) < frame.span:
        raise InvalidInput(
            f"the history has {len(values)} rows; this model reads the last {frame.span}", INPUTS
        )
    read = np.arange(len(values) - frame.span, len(values))
    if (missing := ~present(values[read])).any():
        row = int(read[missing.argmax()])
        raise InvalidInput(f"row {row} of the last {frame.span} has no {target!r}", INPUTS)
    if frame.observation.needs_positive and (values[read] <= 0).any():
        row = int(read[(values[read] <= 0).argmax()])
        raise InvalidInput(
            f"row {row} has {target!r} {values[row]:g}; this model forecasts logarithms and needs "
            "values above 0",
            INPUTS,
        )
    if spacing.is_regular and spacing.irregular(times[read]):
        raise InvalidInput(
            f"the last {frame.span} rows are not each {spacing.describe()} after the one before, "
            "as in training",
            INPUTS,
        )
    return Series(key, columns, times, values)


def check_future(future: Columns | None, needed: Sequence[InputColumn], horizon: int) -> Columns:
    """The covariates of the steps ahead.

    Raises:
        InvalidInput: unless each covariate has a value for every step.
    """
    names = [column.name for column in needed]
    given = future or {}
    if missing := [name for name in names if name not in given]:
        raise InvalidInput(
            f"this model needs {', '.join(missing)} of the {horizon} steps ahead: give an object "
            "of columns",
            FUTURE,
        )
    for name in names:
        if len(given[name]) != horizon:
            raise InvalidInput(
                f"{name!r} has {len(given[name])} values for a horizon of {horizon}", FUTURE
            )
    return {name: given[name] for name in names}


def _check_times(times: np.ndarray, name: str) -> None:
    if not present(times).all():
        raise InvalidInput(f"row {int((~present(times)).argmax())} has no {name!r}", INPUTS)
    if (wrong := times[1:] <= times[:-1]).any():
        row = int(wrong.argmax()) + 1
        raise InvalidInput(
            f"row {row} is of {times[row]}, which is not after row {row - 1}: a history is one "
            "series in the order of time",
            INPUTS,
        )


def _check_key(columns: Columns, config: ForecastConfig) -> str | None:
    if config.key is None:
        return None
    keys = set(columns[config.key].tolist())
    if len(keys) > 1:
        raise InvalidInput(
            f"the rows have {len(keys)} different {config.key!r}: ask for one series at a time",
            INPUTS,
        )
    return str(keys.pop())
