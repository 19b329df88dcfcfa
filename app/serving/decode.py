"""`inputs` of a prediction → NumPy columns, with a pointer to whatever is not as it should be.

Values never go through pydantic: types are checked as sets over whole columns, which runs at the
speed of C, and only a column that fails is searched for the culprit.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from app.validation import pointer
from core.exceptions import Invalid
from models.config import FeatureConfig
from models.features import Columns

FLOAT32_MAX = float(np.finfo(np.float32).max)
MISSING = type(None)
# What `core` reads as times in a data set: RFC 3339, without an offset too, dates, months
TIMESTAMP = re.compile(
    r"\d{4}-\d\d(-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d(:?\d\d)?)?)?)?"
)
MONTH_LENGTH = len("2026-01")

Place = Callable[[int], str]  # a row's number → a pointer to its value in this column


def num_rows(inputs: object) -> int:
    """Rows in `inputs`, of whatever form; raises `Invalid` if it has none that could be counted."""
    match inputs:
        case list() if inputs:
            return len(inputs)
        case dict() if inputs:
            first, values = next(iter(inputs.items()))
            if isinstance(values, list) and values:
                return len(values)
            raise Invalid([(pointer(("inputs", first)), "must be a list with at least one value")])
    forms = "a list of records, a list of lists in feature order, or an object of columns"
    raise Invalid([("/inputs", f"must be {forms}, with at least one row")])


def decode(inputs: list[Any] | dict[str, Any], features: Sequence[FeatureConfig]) -> Columns:
    """The columns that the model's features name.

    Raises:
        Invalid: with the path and what would be right: a feature that is absent (null stands for
            a missing value), a field that is no feature, a value of another type or out of range.
    """
    names = [feature.name for feature in features]
    if isinstance(inputs, dict):
        columns = _from_columns(inputs, names)
        places = [_in_column(name) for name in names]
    elif isinstance(inputs[0], dict):
        columns = _from_records(inputs, names)
        places = [_in_row(name) for name in names]
    else:
        _check_rows(inputs, names)
        if all(feature.type == "number" for feature in features):
            return _matrix(inputs, names)
        columns = [list(column) for column in zip(*inputs, strict=True)]
        places = [_in_row(i) for i in range(len(names))]
    return {
        feature.name: READERS[feature.type](values, place)
        for feature, values, place in zip(features, columns, places, strict=True)
    }


def _from_columns(inputs: dict[str, Any], names: list[str]) -> list[list[Any]]:
    _check_names(inputs, names, ("inputs",))
    expected = num_rows(inputs)
    for name in names:
        values = inputs[name]
        if not isinstance(values, list):
            _refuse(pointer(("inputs", name)), "must be a list with one value per row")
        if len(values) != expected:
            _refuse(
                pointer(("inputs", name)),
                f"has {len(values)} values where other columns have {expected}",
            )
    return [inputs[name] for name in names]


def _from_records(inputs: list[Any], names: list[str]) -> list[list[Any]]:
    expected = set(names)
    for i, record in enumerate(inputs):
        if not isinstance(record, dict):
            _refuse(pointer(("inputs", i)), "must be an object like the first row")
        if record.keys() != expected:
            _check_names(record, names, ("inputs", i))
    return [[record[name] for record in inputs] for name in names]


def _check_rows(inputs: list[Any], names: list[str]) -> None:
    for i, row in enumerate(inputs):
        if not isinstance(row, list):
            _refuse(pointer(("inputs", i)), "must be an object, or a list in feature order")
        if len(row) != len(names):
            _refuse(
                pointer(("inputs", i)),
                f"has {len(row)} values for {len(names)} features: {_listed(names)}",
            )


def _matrix(inputs: list[list[Any]], names: list[str]) -> Columns:
    """Rows of numbers alone, read as one matrix: hundreds of columns cost no more than one."""
    width = len(names)
    flat = list(chain.from_iterable(inputs))
    matrix = _numbers(flat, lambda i: pointer(("inputs", i // width, i % width)))
    return dict(zip(names, matrix.reshape(-1, width).T, strict=True))


def _check_names(given: dict[str, Any], names: list[str], where: tuple[int | str, ...]) -> None:
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in set(names)]
    errors = [
        (pointer((*where, name)), "required; null stands for a missing value") for name in missing
    ] + [
        (pointer((*where, name)), f"not a feature; the model has {_listed(names)}")
        for name in unknown
    ]
    if errors:
        raise Invalid(errors[:20])


def _numbers(values: list[Any], place: Place) -> np.ndarray:
    """float64 with NaN where null stands."""
    if not set(map(type, values)) <= {float, int, MISSING}:
        _refuse_first(values, place, (float, int, MISSING), "must be a number or null")
    return _floats(values, place)


def _booleans(values: list[Any], place: Place) -> np.ndarray:
    """float64 of 0, 1 and NaN."""
    if not set(map(type, values)) <= {bool, MISSING}:
        _refuse_first(values, place, (bool, MISSING), "must be true, false or null")
    return np.array(values, dtype=np.float64)


def _categories(values: list[Any], place: Place) -> np.ndarray:
    """Objects, str or None. A level that training never saw is the model's to handle."""
    if not set(map(type, values)) <= {str, MISSING}:
        _refuse_first(values, place, (str, MISSING), "must be a string or null")
    return _objects(values)


def _datetimes(values: list[Any], place: Place) -> np.ndarray:
    """datetime64[us] in UTC, NaT where null stands; a time without an offset is UTC."""
    expected = "must be an RFC 3339 time such as 2026-01-31T08:00:00Z, or null"
    if not set(map(type, values)) <= {str, MISSING}:
        _refuse_first(values, place, (str, MISSING), expected)
    times = [None if v is None else _instant(v) for v in values]
    for i, (value, time) in enumerate(zip(values, times, strict=True)):
        if time is None and value is not None:
            _refuse(place(i), expected)
    return np.array(times, dtype="datetime64[us]")


def _instant(text: str) -> datetime | None:
    """Naive UTC, as NumPy wants it; None if the text is no time."""
    if not TIMESTAMP.fullmatch(text):
        return None
    try:
        date = f"{text}-01" if len(text) == MONTH_LENGTH else text.upper()
        time = datetime.fromisoformat(date)
        return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    except (ValueError, OverflowError):
        return None


def _tensors(values: list[Any], place: Place) -> np.ndarray:
    """float64 [rows, …]; every row has the shape of the first, and no missing values."""
    shape = _shape(values[0])
    level: list[Any] = values
    for size in shape:
        if set(map(type, level)) != {list} or set(map(len, level)) != {size}:
            _refuse_shape(values, shape, place)
        level = list(chain.from_iterable(level))
    if not shape or not set(map(type, level)) <= {float, int}:
        _refuse_shape(values, shape, place)
    size = len(level) // len(values)
    return _floats(level, lambda i: place(i // size)).reshape(len(values), *shape)


def _shape(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        return ()
    return (len(value), *_shape(value[0]))


def _refuse_shape(values: list[Any], shape: tuple[int, ...], place: Place) -> NoReturn:
    wrong = next((i for i, v in enumerate(values) if not _has_shape(v, shape)), 0)
    kind = " × ".join(map(str, shape)) if shape else "nested lists"
    _refuse(place(wrong), f"must be a tensor of numbers, as in the first row: {kind}")


def _has_shape(value: object, shape: tuple[int, ...]) -> bool:
    if not shape:
        return type(value) in (float, int)
    if not isinstance(value, list) or len(value) != shape[0]:
        return False
    return all(_has_shape(item, shape[1:]) for item in value)


def _texts(values: list[Any], place: Place) -> np.ndarray:
    if not set(map(type, values)) <= {str}:
        _refuse_first(values, place, (str,), "must be a string")
    return _objects(values)


READERS: dict[str, Callable[[list[Any], Place], np.ndarray]] = {
    "number": _numbers,
    "boolean": _booleans,
    "category": _categories,
    "datetime": _datetimes,
    "tensor": _tensors,
    "text": _texts,
}


def _floats(values: list[Any], place: Place) -> np.ndarray:
    """float64, None as NaN; what float32 cannot hold is refused."""
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:  # an integer beyond float64
        array = np.array([v if v is None else _clamped(v) for v in values], dtype=np.float64)
    wrong = ~(np.abs(array) <= FLOAT32_MAX)
    for i in np.flatnonzero(wrong):
        if values[i] is not None:
            _refuse(place(int(i)), "must be a finite number within float32 (±3.4e38)")
    return array


def _clamped(value: float) -> float:
    return value if abs(value) <= FLOAT32_MAX else float("inf")


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _in_row(feature: int | str) -> Place:
    return lambda row: pointer(("inputs", row, feature))


def _in_column(feature: str) -> Place:
    return lambda row: pointer(("inputs", feature, row))


def _listed(names: list[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _refuse_first(
    values: list[Any], place: Place, allowed: tuple[type, ...], message: str
) -> NoReturn:
    row = next(i for i, value in enumerate(values) if type(value) not in allowed)
    _refuse(place(row), message)


def _refuse(path: str, message: str) -> NoReturn:
    raise Invalid([(path, message)])
