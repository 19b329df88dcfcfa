"""Texts of a prediction request, read as the column of the training data was."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column, times
from core.datasets.columns.numbers import FLOAT32_MAX
from core.datasets.columns.place import Place
from core.datasets.understanding import booleans, missing
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.texts import trimmed, without
from models.features.columns import ColumnReading


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
    if reading.type == "text":
        return _objects(pa.chunked_array([[value or "" for value in values]], pa.large_string()))
    known = missing.CLEAR if reading.type == "category" else missing.KNOWN
    texts = without(trimmed(given), (*known, *reading.missing))
    match reading.type:
        case "number":
            return _checked(texts, *_numbers(texts, reading))
        case "boolean":
            return _checked(texts, *_booleans(texts, reading))
        case "datetime":
            return _checked(texts, *_times(texts, reading))
        case "category":
            return _objects(
                without(given, (*missing.CLEAR, *reading.missing))
                if reading.format == "exact"
                else texts
            )
    raise ValueError(f"texts cannot be read as a column of type {reading.type}")


def _numbers(texts: Column, reading: ColumnReading) -> tuple[np.ndarray, str]:
    numbers = np.array([_number(text) for text in texts.to_pylist()], np.float64)
    return numbers, "a number such as 1234.56"


def _number(text: str | None) -> float:
    try:
        value = float(text) if text is not None else np.nan
    except ValueError:
        return np.nan
    return value if abs(value) <= FLOAT32_MAX else np.nan


def _booleans(texts: Column, reading: ColumnReading) -> tuple[np.ndarray, str]:
    words = booleans.of_format(reading.format)
    bits = words.bits(texts).cast(pa.uint8()).cast(pa.float64())
    expected = (reading.format or "true/false").replace("/", " or ")
    return np.array(bits.to_numpy(), np.float64), expected


def _times(texts: Column, reading: ColumnReading) -> tuple[np.ndarray, str]:
    instants = np.array([_time(text) for text in texts.to_pylist()], "datetime64[us]")
    return instants, "a date such as 2024-01-31 or 2024-01-31T10:30:00"


def _time(text: str | None) -> np.datetime64:
    column = times.parse(pa.chunked_array([[text]], pa.large_string()), Place(""))
    if text is None or not pa.types.is_timestamp(column.type):
        return np.datetime64("NaT")
    return np.datetime64(column[0].as_py().replace(tzinfo=None), "us")


def _checked(texts: Column, found: np.ndarray, expected: str) -> np.ndarray:
    """Raise `Unreadable` for the first text without a value."""
    wrong = np.array(pc.is_valid(texts).to_numpy()) & np.isnan(found)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise Unreadable(index, texts[index].as_py(), expected)
    return found


def _objects(column: Column) -> np.ndarray:
    result = np.empty(len(column), object)
    result[:] = column.to_pylist()
    return result
