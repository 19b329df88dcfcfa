"""Texts in a request → values, read as the files of the training data were.

A column takes texts as a file has them, such as `1.234,56 €`, beside values of its type. Booleans
are also the words of any language, and 1 and 0.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from json import dumps
from typing import Any

import numpy as np

from core.datasets.understanding.dates.formats import DateFormat
from core.datasets.understanding.parsing import Unreadable, as_levels, parse
from core.exceptions import Invalid
from models.features.columns import ColumnReading, InputColumn, level_text, without_sentinels

RFC_3339 = "an RFC 3339 time such as 2026-01-31T08:00:00Z"
MAX_SHOWN = 40  # characters of a value in a message

Reader = Callable[[Sequence[Any], Callable[[int], str]], np.ndarray]


def read_mixed(
    column: InputColumn, plain: Reader, values: Sequence[Any], place: Callable[[int], str]
) -> np.ndarray:
    """The array of a column with values of its type and texts.

    Args:
        plain: reads values of the column's type.
        place: the JSON pointer of a value.

    Raises:
        Invalid: at the first value that is neither, with how a text must be written.
    """
    if column.type == "category":
        return as_levels(plain(values, place).tolist(), column)
    if column.type == "datetime" and column.reading is None:
        return plain(values, place)  # without a form, 01.02.2024 could be two days
    if takes_numbers(column):
        values = [level_text(v) if type(v) in (int, float) else v for v in values]
    reading = column.reading_or_plain
    if column.type != "datetime" or not _day_before_month(reading):
        with suppress(Invalid):  # as a rule, values have their type
            return _known(plain(values, place), column)
    texts = {
        i: text for i, value in enumerate(values) if (text := _text(value, column)) is not None
    }
    if column.type == "datetime" and not _day_before_month(reading):
        texts = {i: texts[i] for i in _not_plain(plain, values, list(texts))}
    read = plain([None if i in texts else v for i, v in enumerate(values)], place)
    if not texts:
        return _known(read, column)
    at = list(texts)
    try:
        read[at] = parse([*texts.values()], reading)
    except Unreadable as error:
        other = f", {RFC_3339}" if column.type == "datetime" else ""
        given = shown(values[at[error.index]])
        message = f"must be {error.expected}{other}, or null if it is missing, not {given}"
        raise Invalid([(place(at[error.index]), message)]) from None
    except ValueError as error:  # of an imported model
        raise Invalid([(place(at[0]), f"the model cannot read texts here: {error}")]) from None
    return _known(read, column)


def shown(value: Any) -> str:
    """A value of a request as JSON writes it, in a message; a long one is cut."""
    match value:
        case list() | dict():
            return "a list" if isinstance(value, list) else "an object"
        case str() if len(value) > MAX_SHOWN:
            return f"{dumps(value[:MAX_SHOWN], ensure_ascii=False)} …"
        case int() if abs(value) > 10**MAX_SHOWN:
            return "so large an integer"
    return dumps(value, ensure_ascii=False)


def _text(value: Any, column: InputColumn) -> str | None:
    """The text that a file would have for a value; None for one of the column's type."""
    if column.type == "boolean" and type(value) in (int, float) and value in (0, 1):
        return level_text(value)
    return value if type(value) is str else None


def takes_numbers(column: InputColumn) -> bool:
    """Whether the dates of a column are numbers, such as seconds since 1970."""
    if column.type != "datetime" or column.reading is None:
        return False
    return DateFormat(column.reading.format).is_number


def _known(values: np.ndarray, column: InputColumn) -> np.ndarray:
    """Without numbers and days that stand for a missing value."""
    return without_sentinels(values, column.reading)


def _day_before_month(reading: ColumnReading) -> bool:
    """Whether a time as in JSON, 2024-01-02, would mean another day."""
    return (reading.format or "").startswith("%Y-%d")


def _not_plain(plain: Reader, values: Sequence[Any], at: Sequence[int]) -> list[int]:
    """Those of the places whose text `plain` does not read."""
    try:
        plain([values[i] for i in at], str)
    except Invalid:
        return [i for i in at if len(at) == 1 or _not_plain(plain, values, [i])]
    return []
