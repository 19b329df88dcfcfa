"""Columns of dates and times, with what is said about them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from core.datasets.columns import Column, times
from core.datasets.columns.place import Place
from core.datasets.findings.finding import Finding, Severity
from core.datasets.understanding.dates.formats import OR, DateFormat
from core.datasets.understanding.dates.guess import DateGuess, guess
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import KNOWN
from core.datasets.understanding.texts import Texts, filled, lost, quoted, sample, without
from core.datasets.understanding.understood import Understood
from models.features.columns import ColumnReading

MONTH = "%Y%m"
FEW_MONTHS = 3  # different ones, which may be any numbers
MOST_OTHERS = 0.1  # of the filled rows may be other texts
MOST_FORMS = 5  # of dates in one column
COMPACT = (  # and the least and the largest number
    (MONTH, 190001, 210012),
    ("%Y%m%d", 19000101, 21001231),
    ("%Y%m%d%H%M", 190001010000, 210012312359),
    ("%Y%m%d%H%M%S", 19000101000000, 21001231235959),
)


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
        said = tuple(_words(texts, lost(column, known)))
        return Understood(instants, ColumnReading(name=texts.name, type="datetime"), said)
    return _read(texts, column, known, found)


def compact(texts: Texts, column: Column, numbers: Column) -> Understood | None:
    """The dates of a column whose whole numbers are all such as 20240131 or 202401; else None.

    A time may follow: 20240131235900."""
    found = compact_dates(column, numbers)
    if found is None:
        return None
    format_, instants = found
    shown = next(value for value in sample(column))
    message = f"all whole numbers are dates in the form {shown}: read as dates"
    finding = texts.finding("dates_compact", "info", message, type="number")
    reading = ColumnReading(name=texts.name, type="datetime", format=format_)
    return Understood(instants, reading, (finding,))


def compact_dates(column: Column, numbers: Column) -> "tuple[str, Column] | None":
    """The format and the dates, if all whole numbers are such dates.

    Months are few of the numbers of six digits: others would lie between them, and far apart.
    """
    if not pa.types.is_integer(numbers.type):
        return None
    ends = pc.min_max(numbers)
    low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
    format_ = next((text for text, first, last in COMPACT if first <= low and high <= last), None)
    if format_ is None:
        return None
    instants = DateFormat(format_).read(column)
    if instants.null_count > column.null_count:
        return None
    if format_ == MONTH:
        different = pc.count_distinct(numbers, mode="only_valid").as_py()
        months = (high // 100 - low // 100) * 12 + high % 100 - low % 100 + 1
        if different < max(FEW_MONTHS, months / 2):
            return None
    return format_, instants


def understood(texts: Texts, column: Column, known: Column, format_: DateFormat) -> Understood:
    """The dates in one format, with the cells that are none."""
    instants = format_.read(known)
    said = (
        *_words(texts, lost(column, known)),
        *_others(texts, known, lost(known, instants), format_),
    )
    reading = ColumnReading(name=texts.name, type="datetime", format=format_.text)
    return Understood(instants, reading, said)


def formats(known: Column, found: DateGuess) -> list[DateFormat]:
    """The format that reads most cells, with other forms that cells have; and if it has one, that
    in which day and month change places.
    """
    orders = [text for text in (found.format, found.other) if text is not None]
    orders.sort(key=lambda text: -filled(DateFormat(text).read(known)))  # stable
    others = _other_forms(known, orders[0])
    return [DateFormat(OR.join((text, *others))) for text in orders]


def _other_forms(known: Column, format_: str) -> list[str]:
    """Forms of the cells that a format does not read. Each tells its order of day and month.

    Times with and without a zone are not compared.
    """
    found: list[str] = []
    while len(found) < MOST_FORMS - 1:
        forms = (format_, *found)
        left = known.filter(lost(known, DateFormat(OR.join(forms)).read(known)))
        another = guess(sample(left), day_first=False) if len(left) else None
        form = None if another is None else _certain(left, another)
        if form is None or {form, _turned(form)} & {*DateFormat(OR.join(forms)).forms}:
            break
        if ("%z" in form) != ("%z" in format_):
            break
        found.append(form)
    return [*found, *_iso_forms(known, (format_, *found))]


def _iso_forms(known: Column, forms: Sequence[str]) -> list[str]:
    """The form of the cells in ISO 8601, which other forms read besides their own."""
    format_ = DateFormat(OR.join(forms))
    where = lost(format_.read(known), format_.read_own(known))
    cells = known.filter(where)
    another = guess(sample(cells), day_first=False) if len(cells) else None
    return [] if another is None else [another.format]


def _certain(column: Column, found: DateGuess) -> str | None:
    """The form of the guess if the cells, or its points, tell the order of day and month."""
    if "%y" in found.format:  # versions look like dates of short years
        return None
    if found.other is None:
        return found.format
    one, other = (filled(DateFormat(text).read(column)) for text in (found.format, found.other))
    if one == other:
        return found.format if "%d.%m" in found.format else None
    return found.format if one > other else found.other


def _turned(form: str) -> str:
    return form.translate({ord("d"): "m", ord("m"): "d"})


def _read(texts: Texts, column: Column, known: Column, found: DateGuess) -> Understood | None:
    ways = formats(known, found)
    read = [format_.read(known) for format_ in ways]
    instants, format_ = read[0], ways[0]
    if filled(known) - filled(instants) > MOST_OTHERS * filled(known):
        return None
    result = understood(texts, column, known, format_)
    said = [
        *result.findings,
        *_several_forms(texts, known, format_),
        *_short_years(texts, instants, format_),
    ]
    if len(read) == 2 and filled(read[0]) == filled(read[1]) and _differ(*read):
        said.append(_ambiguous(texts, instants, read[1], ways))
    return Understood(instants, result.reading, tuple(said))


def _several_forms(texts: Texts, known: Column, format_: DateFormat) -> list[Finding]:
    first, *others = format_.forms
    instants = DateFormat(first).read_own(known)
    where = lost(format_.read(known), instants)
    rest = known.filter(where)
    cells = [rest.filter(pc.is_valid(DateFormat(form).read_own(rest))) for form in others]
    shown = [quoted(some[:1].to_pylist()) for some in cells if len(some)]
    if not shown:
        return []
    usual = known.filter(pc.is_valid(instants))[0].as_py()
    message = (
        f"“{usual}” and {', '.join(shown)} are dates in different forms, and each cell tells its "
        "own: all are read as dates ({rows} in another form than the usual one)"
    )
    return [texts.finding("dates_mixed", "info", message, where, type="category")]


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
    severity: Severity = "info" if "%d.%m" in mine.forms[0] else "warning"
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


def _words(texts: Texts, where: Any) -> list[Finding]:
    if not pc.any(where).as_py():
        return []
    message = "{values} in {rows}: no date, read as missing"
    return [texts.finding("mostly_dates", "info", message, where, type="category", missing=[])]


def _others(texts: Texts, known: Column, where: Any, format_: DateFormat) -> list[Finding]:
    if not pc.any(where).as_py():
        return []
    begin = f"a column of dates such as {format_.example}, with {{values}} in {{rows}}"
    forms = _other_forms(known, format_.text) if format_.text is not None else []
    if forms:
        message = f"{begin}: dates in another form, read as missing"
        more = OR.join((*format_.forms, *forms))
        return [
            texts.finding("mostly_dates", "warning", message, where, type="datetime", format=more)
        ]
    message = (
        f"{begin}: no date written so, or a day that does not exist, read as missing; read the "
        "column as category if these texts mean something"
    )
    return [texts.finding("mostly_dates", "warning", message, where, type="category", missing=[])]
