"""Texts in a request → values, read as the files of the training data were.

A column of which the training data had texts such as `1.234,56 €` takes such texts, beside values
of its type.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from core.datasets.understanding.dates.formats import DateFormat
from core.datasets.understanding.parsing import Unreadable, parse
from core.exceptions import Invalid
from models.features.columns import ColumnReading, InputColumn, level_text
from models.features.readings import EXACT, as_trained, without_sentinels

RFC_3339 = "an RFC 3339 time such as 2026-01-31T08:00:00Z"

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
    assert column.reading is not None
    if column.reading.format == EXACT:
        absent = ("", *column.reading.missing)
        known = plain([None if value in absent else value for value in values], place)
        return as_trained(known, column)
    if takes_numbers(column):
        values = [level_text(v) if type(v) in (int, float) else v for v in values]
    at = [i for i, value in enumerate(values) if type(value) is str]
    if column.type == "datetime" and not _day_before_month(column.reading):
        at = _not_plain(plain, values, at)
    if not at:
        return _known(plain(values, place), column)
    texts = dict.fromkeys(at)
    read = plain([None if i in texts else v for i, v in enumerate(values)], place)
    try:
        read[at] = parse([values[i] for i in at], column.reading)
    except Unreadable as error:
        other = f", {RFC_3339}" if column.type == "datetime" else ""
        message = f"must be {error.expected}{other}, or null if it is missing"
        raise Invalid([(place(at[error.index]), message)]) from None
    except ValueError as error:  # of an imported model
        raise Invalid([(place(at[0]), f"the model cannot read texts here: {error}")]) from None
    if column.spellings is None:
        return _known(read, column)
    levels = set(column.spellings.values())  # even one that elsewhere stands for a missing value
    exact = [
        values[i] if values[i] in levels else level for i, level in zip(at, read[at], strict=True)
    ]
    read[at] = np.array([*exact, None], dtype=object)[:-1]
    return as_trained(read, column)


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
