"""Texts of a prediction request, read as the column of the training data was."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.columns.numbers import FLOAT32_MAX
from core.datasets.columns.times import LOCAL_MICROSECONDS
from core.datasets.understanding import booleans, levels, missing
from core.datasets.understanding.dates.formats import DateFormat
from core.datasets.understanding.forced import without_zeros
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.number_formats import NumberFormat
from core.datasets.understanding.texts import BLANKS, trimmed, without
from models.features.columns import (
    ColumnReading,
    InputColumn,
    is_known,
    level_as_trained,
    without_sentinels,
)


class Unreadable(ValueError):
    """A text that does not fit its column's reading.

    Args:
        index: its place among the values, counting from 0.
        expected: how it must be written.
    """

    def __init__(self, index: int, value: str, expected: str) -> None:
        super().__init__(f"{value!r} is not {expected}")
        self.index, self.value, self.expected = index, value, expected


def parse(values: Sequence[str | None], reading: ColumnReading) -> np.ndarray:
    """The values in the convention of `models.features.columns.Columns`.

    None, empty texts and texts that stand for missing values are missing.

    Args:
        reading: of type number, boolean, datetime, category or text.

    Raises:
        Unreadable: the first value that cannot be read.
    """
    given = pa.chunked_array([pa.array(values, pa.large_string())])
    match reading.type:
        case "number":
            return _numbers(_filled(given, missing.NO_NUMBERS, reading), reading)
        case "boolean":
            return _booleans(_filled(given, missing.CLEAR, reading), reading)
        case "datetime":
            return _times(_filled(given, missing.KNOWN, reading), reading)
        case "category":
            return as_levels(
                values, InputColumn(name=reading.name, type="category", reading=reading)
            )
        case "text":
            return _objects([value or "" for value in values])
    raise ValueError(f"texts cannot be read as a column of type {reading.type}")


def as_levels(values: Sequence[str | None], column: InputColumn) -> np.ndarray:
    """Texts as the levels of the training data, None where they stand for a missing value.

    A level that the model knows never stands for one. A level that it does not know stays.
    """
    found = {value: _level(value, column) for value in set(values)}
    return _objects([found[value] for value in values])


def _level(text: str | None, column: InputColumn) -> str | None:
    if text is None or text in column.levels:
        return text
    reading = column.reading_or_plain
    is_exact = reading.format == levels.EXACT
    clean = text if is_exact else text.strip(BLANKS)
    words = (*(missing.ALWAYS if is_exact else missing.CLEAR), *reading.missing)
    if clean in words and not is_known(clean, column):
        return None
    return level_as_trained(clean, column)


def expected(reading: ColumnReading) -> str:
    """How a text of a column of numbers, times or booleans must be written."""
    match reading.type:
        case "datetime":
            return DateFormat.parse(reading.format).expected
        case "boolean":
            return (reading.format or "true/false").replace("/", " or ")
    return f"a number such as {reading.format or '1234.56'}"


def _filled(given: Column, words: tuple[str, ...], reading: ColumnReading) -> Column:
    """Without blanks at the ends, null where a text stands for a missing value."""
    return without(trimmed(given), (*missing.ALWAYS, *words, *reading.missing))


def _numbers(texts: Column, reading: ColumnReading) -> np.ndarray:
    format_ = NumberFormat.parse(reading.format)
    numbers = format_.read_clear(without_zeros(texts)).cast(pa.float64())
    found = np.array(numbers.to_numpy(), np.float64)
    found[np.abs(found) > FLOAT32_MAX] = np.nan
    _checked(texts, found, expected(reading))
    kept = missing.without_values(numbers, reading.missing) if reading.missing else numbers
    return np.array(kept.to_numpy(), np.float64)


def _booleans(texts: Column, reading: ColumnReading) -> np.ndarray:
    bits = booleans.bits_of(booleans.of_format(reading.format), texts)
    numbers = bits.cast(pa.uint8()).cast(pa.float64())
    return _checked(texts, np.array(numbers.to_numpy(), np.float64), expected(reading))


def _times(texts: Column, reading: ColumnReading) -> np.ndarray:
    format_ = DateFormat.parse(reading.format)
    instants = format_.read(texts).cast(LOCAL_MICROSECONDS)
    found = _checked(texts, np.array(instants.to_numpy(), "datetime64[us]"), expected(reading))
    return without_sentinels(found, reading)


def _checked(texts: Column, found: np.ndarray, form: str) -> np.ndarray:
    """Raise `Unreadable` for the first text without a value."""
    wrong = np.array(pc.is_valid(texts).to_numpy()) & np.isnan(found)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise Unreadable(index, str(texts[index].as_py()), form)
    return found


def _objects(values: Sequence[str | None]) -> np.ndarray:
    result = np.empty(len(values), object)
    result[:] = values
    return result
