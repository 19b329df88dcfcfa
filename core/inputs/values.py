"""JSON values of one column → an array. Errors point to the first wrong value.

Values do not go through pydantic. The types of a whole block are checked as a set, at the speed of
C; only a block that fails is searched for the wrong value. A block is small, because one call of C
holds the interpreter's lock until it ends and so blocks the event loop.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import chain
from math import prod
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from core.exceptions import Invalid
from core.inputs.texts import Reader, read_mixed, shown
from models.features.columns import InputColumn

FLOAT32_MAX = float(np.finfo(np.float32).max)
BLOCK_VALUES = 16_384  # take about half a millisecond
MISSING = type(None)
# The times that `core` reads in a data set: RFC 3339 with or without offset, dates, and months
TIMESTAMP = re.compile(
    r"\d{4}-\d\d(-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d(:?\d\d)?)?)?)?"
)
MONTH_LENGTH = len("2026-01")

Values = Sequence[Any]
Place = Callable[[int], str]  # the number of a value → its pointer


def read_values(column: InputColumn, values: Values, place: Place) -> np.ndarray:
    """The array of an input column, in the convention of `models.features.columns`.

    Raises:
        Invalid: a value has another type, or is outside float32.
    """
    if column.type == "tensor":
        return read_tensors(values, place, column.shape)
    read = READERS[column.type]
    if column.zone is not None:
        zone = ZoneInfo(column.zone)
        read = partial(_datetimes, given=zone, taken=zone if column.takes_local else UTC)
    return blocks(partial(read_mixed, column, read), values, place)


def blocks(read: Reader, rows: Values, place: Place, values_per_row: int = 1) -> np.ndarray:
    """The array of all rows, which `read` makes block by block."""
    step = max(1, BLOCK_VALUES // values_per_row)
    starts = range(0, len(rows), step)
    return np.concatenate(
        [read(rows[start : start + step], partial(_later, place, start)) for start in starts]
    )


def _later(place: Place, start: int, i: int) -> str:
    return place(start + i)


def read_numbers(values: Values, place: Place) -> np.ndarray:
    """float64, with NaN for null."""
    check_types(values, place, {float, int, MISSING}, "must be a number or null")
    return _floats(values, place)


def read_tensors(
    values: Values, place: Place, expected: tuple[int, ...] | None = None
) -> np.ndarray:
    """float32 [rows, …], without missing values.

    Args:
        expected: the shape of each row; None for the shape of the first one.
    """
    shape = _shape(values[0]) if expected is None else expected
    size = prod(shape)

    def read(rows: Values, place: Place) -> np.ndarray:
        flat = _numbers(rows, shape)
        if flat is None:
            wrong = next(i for i, row in enumerate(rows) if _numbers([row], shape) is None)
            kind = " × ".join(map(str, shape)) if shape else "nested lists"
            raise _wrong(place(wrong), f"must be a tensor of numbers: {kind}")
        array = _floats(flat, lambda i: place(i // size))
        return array.astype(np.float32).reshape(len(rows), *shape)

    return blocks(read, values, place, values_per_row=size)


def _booleans(values: Values, place: Place) -> np.ndarray:
    """float64: 0, 1, and NaN for null."""
    check_types(values, place, {bool, MISSING}, "must be true, false or null")
    return np.array(values, dtype=np.float64)


def _categories(values: Values, place: Place) -> np.ndarray:
    """Objects: str or None. The model handles levels that are not in its training rows."""
    check_types(values, place, {str, MISSING}, "must be a string or null")
    return np.array([*values, None], dtype=object)[:-1]  # None prevents fixed-size text


def _texts(values: Values, place: Place) -> np.ndarray:
    """Objects: str; a missing text is empty."""
    return np.array(["" if v is None else v for v in _categories(values, place)] + [None], object)[
        :-1
    ]


def _datetimes(
    values: Values, place: Place, given: tzinfo = UTC, taken: tzinfo = UTC
) -> np.ndarray:
    """datetime64[us], with NaT for null.

    Args:
        given: the zone of a time without an offset.
        taken: the zone of what is returned.
    """
    expected = "must be an RFC 3339 time such as 2026-01-31T08:00:00Z, or null"
    check_types(values, place, {str, MISSING}, expected)
    times = [None if value is None else _time(value, given, taken) for value in values]
    for i, (value, time) in enumerate(zip(values, times, strict=True)):
        if time is None and value is not None:
            raise _wrong(place(i), f"{expected}, not {shown(value)}")
    return np.array(times, dtype="datetime64[us]")


READERS: dict[str, Reader] = {
    "number": read_numbers,
    "boolean": _booleans,
    "category": _categories,
    "datetime": _datetimes,
    "text": _texts,
}


def _time(text: str, given: tzinfo, taken: tzinfo) -> datetime | None:
    """The time in a zone, without the zone for NumPy; None if the text is not a time."""
    if not TIMESTAMP.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(f"{text}-01" if len(text) == MONTH_LENGTH else text.upper())
        if time.tzinfo is None and given is taken:
            return time
        return (
            (time if time.tzinfo else time.replace(tzinfo=given))
            .astimezone(taken)
            .replace(tzinfo=None, fold=0)
        )
    except (ValueError, OverflowError):
        return None


def _shape(value: object) -> tuple[int, ...]:
    """The shape of nested lists, from the first element of each."""
    if not isinstance(value, list) or not value:
        return ()
    return (len(value), *_shape(value[0]))


def _numbers(rows: Values, shape: tuple[int, ...]) -> list[Any] | None:
    """All numbers in order; None if a row is not a tensor of this shape."""
    flat = flatten(rows, shape)
    return flat if shape and flat and set(map(type, flat)) <= {float, int} else None


def flatten(rows: Values, shape: Sequence[int]) -> list[Any] | None:
    """All values of nested lists in order; None if a row does not have this shape."""
    level = list(rows)
    for size in shape:
        if set(map(type, level)) != {list} or set(map(len, level)) != {size}:
            return None
        level = list(chain.from_iterable(level))
    return level


def _floats(values: Values, place: Place) -> np.ndarray:
    """float64, with NaN for None. Raises `Invalid` for a number outside float32."""
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:  # an integer beyond float64
        array = np.array([_bounded(value) for value in values], dtype=np.float64)
    for i in np.flatnonzero(~(np.abs(array) <= FLOAT32_MAX)).tolist():
        if values[i] is not None:
            raise _wrong(place(i), "must be a finite number within float32 (±3.4e38)")
    return array


def _bounded(value: float | None) -> float | None:
    return value if value is None or abs(value) <= FLOAT32_MAX else float("inf")


def check_types(values: Values, place: Place, allowed: set[type], message: str) -> None:
    """Raise `Invalid` at the first value of another type. A bool is not an int."""
    if not set(map(type, values)) <= allowed:
        row = next(i for i, value in enumerate(values) if type(value) not in allowed)
        raise _wrong(place(row), f"{message}, not {shown(values[row])}")


def _wrong(path: str, message: str) -> Invalid:
    return Invalid([(path, message)])
