"""Columns of dates and times, with what is said about them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from core.datasets.columns import Column, times
from core.datasets.columns.place import Place
from core.datasets.findings.finding import Finding, Severity
from core.datasets.understanding.date_formats import DateFormat
from core.datasets.understanding.date_guess import DateGuess, guess
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import KNOWN
from core.datasets.understanding.texts import Texts, filled, lost, sample, without
from core.datasets.understanding.understood import Understood
from models.features.columns import ColumnReading

MOST_OTHERS = 0.1  # of the filled rows may be other texts
COMPACT = "%Y%m%d"
COMPACT_YEARS = 19000101, 21001231


def read(texts: Texts, column: Column, hints: Hints) -> Understood | None:
    """The column, if it holds dates but for a few cells; else None.

    Args:
        column: without blanks at the ends of the texts.
    """
    known = without(column, KNOWN)
    if filled(known) == 0:
        return None
    found = guess(sample(known), day_first=hints.day_first)
    if found is None:
        return None
    instants = times.parse(known, Place(texts.name))
    if pa.types.is_timestamp(instants.type):
        missing = _missing(texts, lost(column, known), lost(known, instants))
        return Understood(instants, ColumnReading(name=texts.name, type="datetime"), missing)
    return _read(texts, column, known, found)


def compact(texts: Texts, column: Column, numbers: Column) -> Understood | None:
    """The dates of a column whose whole numbers are all such as 20240131; else None."""
    if not pa.types.is_integer(numbers.type):
        return None
    ends, (first, last) = pc.min_max(numbers), COMPACT_YEARS
    if not (first <= (ends["min"].as_py() or 0) and (ends["max"].as_py() or 0) <= last):
        return None
    instants = DateFormat(COMPACT).read(column)
    if instants.null_count > column.null_count:
        return None
    message = "all whole numbers are dates in the form 20240131: read as dates"
    finding = texts.finding("dates_compact", "info", message, type="number")
    reading = ColumnReading(name=texts.name, type="datetime", format=COMPACT)
    return Understood(instants, reading, (finding,))


def understood(texts: Texts, column: Column, known: Column, format_: DateFormat) -> Understood:
    """The dates in one format, with the cells that are none."""
    instants = format_.read(known)
    missing = _missing(texts, lost(column, known), lost(known, instants))
    reading = ColumnReading(name=texts.name, type="datetime", format=format_.text)
    return Understood(instants, reading, missing)


def _read(texts: Texts, column: Column, known: Column, found: DateGuess) -> Understood | None:
    formats = [DateFormat(text) for text in (found.format, found.other) if text is not None]
    read = [format_.read(known) for format_ in formats]
    best = max(range(len(read)), key=lambda place: filled(read[place]))  # the first of equals
    instants, format_ = read[best], formats[best]
    if filled(known) - filled(instants) > MOST_OTHERS * filled(known):
        return None
    result = understood(texts, column, known, format_)
    said = [*result.findings, *_short_years(texts, instants, format_)]
    if len(read) == 2 and filled(read[0]) == filled(read[1]) and _differ(*read):
        said.append(_ambiguous(texts, instants, read[1], formats))
    return Understood(instants, result.reading, tuple(said))


def _differ(first: Column, second: Column) -> bool:
    return bool(pc.any(pc.not_equal(first, second)).as_py())


def _ambiguous(
    texts: Texts, instants: Column, other: Column, formats: Sequence[DateFormat]
) -> Finding:
    """Points between day and month nearly always stand after a day, so they are no warning."""
    mine, turned = formats
    differ: Any = pc.fill_null(pc.not_equal(instants, other), False)
    row = int(pc.index(differ, True).as_py())
    message = (
        f"“{texts.column[row].as_py()}” is read as {_day(instants, row)}; it could also mean "
        f"{_day(other, row)}: no value tells which of day and month comes first"
    )
    change = {"type": "datetime", "format": turned.text}
    severity: Severity = "info" if "%d.%m" in (mine.text or "") else "warning"
    return texts.finding("dates_ambiguous", severity, message, differ, **change)


def _day(instants: Column, row: int) -> str:
    return str(instants[row].as_py().date())


def _short_years(texts: Texts, instants: Column, format_: DateFormat) -> list[Finding]:
    if format_.text is None or "%y" not in format_.text:
        return []
    ends = pc.min_max(instants)
    first, last = ends["min"].as_py().year, ends["max"].as_py().year
    message = f"years of two digits are read as {first} to {last} (69 to 99 as 1969 to 1999)"
    return [texts.finding("dates_short_years", "info", message, type="category")]


def _missing(texts: Texts, words: Any, others: Any) -> tuple[Finding, ...]:
    found = []
    if pc.any(words).as_py():
        message = "{values} in {rows}: no date, read as missing"
        found.append(texts.finding("mostly_dates", "info", message, words, type="category"))
    if pc.any(others).as_py():
        message = (
            "a column of dates, with {values} in {rows}: no date, or a day that does not exist, "
            "read as missing; read the column as category if these texts mean something"
        )
        found.append(texts.finding("mostly_dates", "warning", message, others, type="category"))
    return tuple(found)
