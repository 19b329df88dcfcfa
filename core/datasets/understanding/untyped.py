"""What a column of a text file is: its texts tell, unless its owner does."""

from dataclasses import replace

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.findings.finding import Finding
from core.datasets.findings.names import names_date, names_time
from core.datasets.understanding import (
    boolean_columns,
    levels,
    number_columns,
    plain_numbers,
    unread,
)
from core.datasets.understanding.dates import columns as date_columns
from core.datasets.understanding.dates.formats import epoch_of
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import ALWAYS, CLEAR
from core.datasets.understanding.texts import Texts, sample, trimmed, without
from core.datasets.understanding.understood import Understood
from models.features.columns import ColumnReading

_LEADING_ZERO = r"^[+-]?0[0-9]+$"


def read(
    texts: Texts, hints: Hints, missing: tuple[str, ...] = (), words: tuple[str, ...] = CLEAR
) -> Understood:
    """The column as what most of its texts are.

    Args:
        missing: texts that stand for a missing value besides the usual ones.
        words: the usual ones, if the column holds levels.

    Raises:
        Invalid: a number is outside float32.
    """
    column = texts.column
    numbers = None if missing else plain_numbers.whole(column)
    if numbers is None:
        column = without(column, (*ALWAYS, *missing))
        numbers = number_columns.plain(column, hints)
        numbers = _nanoseconds(texts.name, column) if numbers is None else numbers
    if numbers is not None:
        return _numbers(texts, column, numbers, hints)
    column = without(trimmed(column), (*ALWAYS, *missing))
    found = boolean_columns.read(texts, column)
    if found is None and _has_digits(column):
        found = date_columns.read(texts, column, hints)
        found = found or number_columns.read(texts, column, hints)
    return found or _levels(texts, column, hints, missing, words)


def _nanoseconds(name: str, column: Column) -> "Column | None":
    """Numbers of 19 digits that count time: no codes, though they have as many digits.

    Without a name that says so, they must be whole microseconds.
    """
    numbers = plain_numbers.cast(column, pa.int64())
    if numbers is None or numbers.null_count == len(numbers):
        return None
    ends = pc.min_max(numbers)
    named = {"is_date": names_date(name), "is_time": names_time(name)}
    if epoch_of(ends["min"].as_py(), ends["max"].as_py(), **named) != "unix_ns":
        return None
    whole = pc.equal(pc.multiply(pc.divide(numbers, 1000), 1000), numbers)
    return numbers if any(named.values()) or pc.all(whole).as_py() else None


def _has_digits(column: Column) -> bool:
    """Whether a text of the sample holds a digit, without which it is no number and no date."""
    return any(character.isdigit() for text in sample(column) for character in text)


def _numbers(texts: Texts, column: Column, numbers: Column, hints: Hints) -> Understood:
    if numbers.null_count == len(numbers):
        numbers = numbers.cast(pa.float64())
    elif dates := date_columns.compact(texts, column, numbers):
        return dates
    reading = ColumnReading(name=texts.name, type="number")
    whole = pa.types.is_integer(numbers.type) or numbers.null_count == len(numbers)
    findings = () if whole else number_columns.doubtful(texts, column, hints)
    return Understood(number_columns.in_range(texts, numbers), reading, findings)


def _levels(
    texts: Texts,
    column: Column,
    hints: Hints,
    missing: tuple[str, ...],
    words: tuple[str, ...],
) -> Understood:
    found = levels.read(texts, missing, words=words)
    if found.column.null_count == len(found.column):
        nothing = ColumnReading(name=texts.name, type="number")
        return Understood(found.column.cast(pa.float64()), nothing, found.findings)
    said = _codes(texts, column) or unread.findings(texts, found.column, hints)
    return replace(found, findings=(*found.findings, *said))


def _codes(texts: Texts, column: Column) -> list[Finding]:
    """Why a column of digits is no column of numbers."""
    if not pc.all(pc.match_substring_regex(column, r"^[+-]?[0-9]+$")).as_py():
        return []
    zeros = pc.fill_null(pc.match_substring_regex(column, _LEADING_ZERO), False)
    if pc.any(zeros).as_py():
        message = "{values} in {rows}: codes with leading zeros, read as category to keep them"
        return [texts.finding("codes", "info", message, zeros, type="number")]
    if pc.any(pc.match_substring_regex(column, plain_numbers.TELEPHONE)).as_py():
        message = "telephone numbers such as {values}: read as category"
    else:
        message = (
            f"whole numbers of {plain_numbers.EXACT_DIGITS} digits or more would be rounded: "
            "read as category"
        )
    return [texts.finding("codes", "info", message, type="number")]
