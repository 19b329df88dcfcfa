"""Python values, piece by piece, to columns of one type; what mixes kinds becomes text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

Array = Any
WHOLE = 2.0**53  # up to here a float64 holds every whole number
TEXT = pa.large_string()


@dataclass
class Pieces:
    """A column that grows by pieces.

    Args:
        is_mixed: whether its cells are of several kinds, so that it is of texts.
    """

    arrays: list[Array] = field(default_factory=list)
    is_mixed: bool = False

    def add(self, values: Sequence[Any]) -> None:
        """Add scalars; None is a missing value."""
        kinds = set(map(type, values)) - {type(None)}
        array = _array(values, kinds)
        self.is_mixed |= array is None
        self.arrays.append(_texts(values) if array is None else array)

    def add_missing(self, count: int) -> None:
        """Add rows without a value."""
        if count:
            self.arrays.append(pa.nulls(count))

    def column(self) -> Array:
        """All pieces as one column."""
        types = {array.type for array in self.arrays if not pa.types.is_null(array.type)}
        common = None if self.is_mixed else _common(types)
        if common is None:
            self.is_mixed = True
            return pa.chunked_array([_as_texts(array) for array in self.arrays], TEXT)
        arrays: Any = [array.cast(common, safe=False) for array in self.arrays]
        return _whole(pa.chunked_array(arrays, common))


def text_of(value: Any) -> str:
    """A value as a text file would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < WHOLE else repr(value)
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value.total_seconds()) if isinstance(value, timedelta) else str(value)


def _array(values: Sequence[Any], kinds: set[type]) -> Array | None:
    """The values of one kind; None if they are of several."""
    if not kinds:
        return pa.nulls(len(values))
    if kinds <= {int, float}:
        return _numbers(values, is_whole=kinds == {int})
    if kinds <= {date, datetime}:
        return _moments(values, has_times=datetime in kinds)
    if timedelta in kinds and kinds <= {time, timedelta}:
        return pa.array([None if v is None else _seconds(v) for v in values], pa.float64())
    if len(kinds) > 1:
        return None
    return _texts(values) if kinds == {str} else pa.array(values)


def _numbers(values: Sequence[Any], *, is_whole: bool) -> Array:
    if is_whole:
        try:
            return pa.array(values, pa.int64())
        except (pa.ArrowInvalid, OverflowError):  # beyond 64 bits
            pass
    return pa.array([None if v is None else _float(v) for v in values], pa.float64())


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _moments(values: Sequence[Any], *, has_times: bool) -> Array:
    if not has_times:
        return pa.array(values, pa.date32())
    full = [datetime(v.year, v.month, v.day) if type(v) is date else v for v in values]  # noqa: DTZ001
    return pa.array(full, pa.timestamp("us"))


def _seconds(value: time | timedelta) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6


def _texts(values: Sequence[Any]) -> Array:
    texts = [None if value is None else text_of(value) for value in values]
    try:
        return pa.array(texts, TEXT)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        return pa.array([t and t.encode("utf-8", "replace").decode() for t in texts], TEXT)


def _as_texts(array: Array) -> Array:
    if array.type == TEXT or pa.types.is_null(array.type):
        return array.cast(TEXT)
    return _texts(array.to_pylist())


def _common(types: set[pa.DataType]) -> Any:
    """The type that holds all values; None if their kinds differ."""
    if len(types) < 2:
        return next(iter(types), pa.null())
    if types == {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.timestamp("us") if types == {pa.date32(), pa.timestamp("us")} else None


def _whole(column: Array) -> Array:
    """Floats as integers if all are whole: workbooks write integers so."""
    if not pa.types.is_floating(column.type) or column.null_count == len(column):
        return column
    numbers = np.concatenate([chunk.drop_null().to_numpy() for chunk in column.chunks])
    is_whole = np.all((numbers == np.trunc(numbers)) & (np.abs(numbers) < WHOLE))
    return column.cast(pa.int64()) if is_whole else column
