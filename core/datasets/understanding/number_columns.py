"""Columns of numbers, with what is said about them."""

import re
from dataclasses import dataclass, replace

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.columns.numbers import FLOAT32_MAX, OUT_OF_RANGE, checked
from core.datasets.columns.place import Place
from core.datasets.findings.finding import Code, Finding, Severity
from core.datasets.understanding import plain_numbers
from core.datasets.understanding.affixes import PERCENT, currency_of
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import NO_NUMBERS
from core.datasets.understanding.number_formats import (
    NumberFormat,
    ascii_column,
    ascii_text,
    other_mark,
)
from core.datasets.understanding.number_guess import NumberGuess, guess
from core.datasets.understanding.texts import Texts, filled, kept, lost, quoted, sample, without
from core.datasets.understanding.understood import Understood
from core.exceptions import Invalid
from models.features.columns import ColumnReading

MOST_OTHERS = 0.1  # of the filled rows may be other texts
_CODES = r"^(0[0-9]+|\+[0-9]{7,}|0[xX][0-9a-fA-F]+)$"
FEW_DIFFERENT = 3  # texts, of which nothing can be said
EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_ONLY_GROUPS = r"^[+-]?([1-9][0-9]{0,2}(\.[0-9]{3})+|[0-9]+)$"


@dataclass(frozen=True)
class Read:
    """Numbers, null where a text is none, and how they were read."""

    numbers: Column
    guess: NumberGuess


def plain(column: Column, hints: Hints) -> "Column | None":
    """The numbers of a column that writes them plainly; `1.234` may mean 1234 in its file."""
    numbers = plain_numbers.read(column)
    if numbers is None or hints.decimal != "," or pa.types.is_integer(numbers.type):
        return numbers
    return None if _may_be_groups(column) else numbers


def _may_be_groups(column: Column) -> bool:
    """Whether three digits stand after every point."""
    return bool(pc.all(pc.match_substring_regex(column, _ONLY_GROUPS)).as_py())


def doubtful(texts: Texts, column: Column, hints: Hints) -> tuple[Finding, ...]:
    """A finding if all plain numbers look like `1.234` and nothing in the file tells the mark."""
    some = sample(column) if hints.decimal is None else []
    if len(some) < FEW_DIFFERENT or not all(map(EITHER.fullmatch, some)):
        return ()
    if not pc.all(pc.match_substring_regex(column, f"^{EITHER.pattern}$")).as_py():
        return ()
    message = "{values}: read as numbers between 1 and 1000 with three decimals; a file may also "
    message += "write thousands in this way"
    other = str(NumberFormat(",", "."))
    return (texts.finding("thousands", "warning", message, type="number", format=other),)


def read(texts: Texts, column: Column, hints: Hints) -> Understood | None:
    """The column, if it holds numbers but for a few cells; else None.

    Args:
        column: without blanks at the ends of the texts.

    Raises:
        Invalid: a number is outside float32.
    """
    known = without(column, NO_NUMBERS)
    found = parse(known, hints)
    if found is None or not filled(found.numbers):
        return None
    if found.guess.units:
        return _several_units(texts, column, found)
    if plain_numbers.is_identifiers(known, found.numbers):
        return None
    others = lost(known, found.numbers)
    if pc.sum(others).as_py() > MOST_OTHERS * filled(known):
        return _two_marks(texts, column, found, others)
    return understood(texts, column, found, hints)


def understood(texts: Texts, column: Column, found: Read, hints: Hints) -> Understood:
    """The numbers with their findings."""
    format_, known = found.guess.format, without(column, NO_NUMBERS)
    others = lost(known, found.numbers)
    text = None if format_ == NumberFormat() else str(format_)
    return Understood(
        in_range(texts, found.numbers),
        ColumnReading(name=texts.name, type="number", format=text),
        (
            *_missing(texts, lost(column, known), others),
            *_marks(texts, known, found.guess, hints),
            *_affix(texts, found),
            *_negative(texts, found),
        ),
    )


def in_range(texts: Texts, numbers: Column) -> Column:
    """The numbers. Raises `Invalid` for the first outside float32, by its line."""
    try:
        return checked(numbers, Place(texts.name))
    except Invalid as error:
        outside = pc.greater(pc.abs(numbers.cast(pa.float64())), FLOAT32_MAX)
        line, value = texts.line(pc.fill_null(outside, False))
        message = f"column {texts.name!r}, line {line}: {value!r} {OUT_OF_RANGE}"
        raise Invalid([(error.errors[0][0], message)]) from error


def parse(known: Column, hints: Hints) -> Read | None:
    """The numbers by the format of most texts, or None."""
    if filled(known) == 0:
        return None
    numbers = plain(known, hints)
    if numbers is not None:
        return Read(numbers, NumberGuess(NumberFormat()))
    some = sample(known)
    found = guess(some, hints.decimal)
    return None if found is None else _checked(known, hints, found, some)


def _checked(known: Column, hints: Hints, found: NumberGuess, some: list[str]) -> Read | None:
    """The numbers, after a second look at the texts that the sample did not show."""
    numbers = found.format.read(known)
    left = known.filter(lost(known, numbers))
    if pc.any(pc.match_substring_regex(left, _CODES)).as_py():
        return None
    again = guess([*some, *sample(left)], hints.decimal) if len(left) else found
    if again is None:
        return None
    return most_read(known, Read(numbers if again == found else again.format.read(known), again))


def most_read(known: Column, found: Read) -> Read:
    """The numbers with the decimal mark that reads most cells; with either, if that reads more
    cells and each of those that one mark reads.
    """
    format_ = found.guess.format
    marks = {format_.decimal, format_.group} - {""}
    left = known.filter(lost(known, found.numbers))
    if not len(left) or found.guess.units or format_.scaled or not marks <= {".", ","}:
        return found
    if not filled(replace(format_, group="", either=True).read(left)):
        return found
    either = _with(known, found, replace(format_, group="", either=True))
    if not pc.any(lost(found.numbers, either.numbers)).as_py():
        return either
    turned = _with(known, found, _turned(replace(format_, group=other_mark(format_.decimal))))
    return max(found, turned, key=lambda one: filled(one.numbers))


def _with(known: Column, found: Read, format_: NumberFormat) -> Read:
    return Read(format_.read(known), replace(found.guess, format=format_))


def _missing(texts: Texts, words: Column, others: Column) -> list[Finding]:
    found = []
    if pc.any(words).as_py():
        message = "{values} in {rows}: no number, read as missing"
        found.append(
            texts.finding("mostly_numeric", "info", message, words, type="category", missing=[])
        )
    if pc.any(others).as_py():
        message = (
            "a column of numbers, with {values} in {rows}: read as missing; read the column as "
            "category if these texts mean something"
        )
        found.append(
            texts.finding("mostly_numeric", "warning", message, others, type="category", missing=[])
        )
    return found


def _marks(texts: Texts, known: Column, found: NumberGuess, hints: Hints) -> list[Finding]:
    format_ = found.format
    if format_.either:
        return _either(texts, known, format_)
    if not found.guessed and not format_.group:
        return []
    marked = pc.match_substring(ascii_column(texts.column), format_.group or format_.decimal)
    where = kept(texts.column, marked)
    if where.null_count == len(where):
        return []
    shown = next(value for value in sample(where))
    value = format_.read(pa.chunked_array([[shown]], pa.large_string()))[0].as_py()
    message = f"“{shown}” is read as {value}"
    if not found.guessed:
        return [texts.finding("thousands", "info", message, pc.is_valid(where), type="category")]
    turned = _turned(format_)
    other = turned.read(pa.chunked_array([[shown]], pa.large_string()))[0].as_py()
    severity: Severity = "warning" if hints.decimal is None else "info"
    return [
        texts.finding(
            "thousands",
            severity,
            f"{message}; it could also mean {other}",
            pc.is_valid(where),
            type="number",
            format=str(turned),
        )
    ]


def _either(texts: Texts, known: Column, format_: NumberFormat) -> list[Finding]:
    """Both marks of the column, each with a cell that only this mark reads."""
    ways = [
        replace(format_.with_decimal(mark), group=other_mark(mark)).read(known) for mark in ".,"
    ]
    only = [pc.and_(pc.is_valid(one), pc.is_null(other)) for one, other in (ways, ways[::-1])]
    if not all(pc.any(where).as_py() for where in only):
        return []
    points, commas = (known.filter(where)[0].as_py() for where in only)
    fewer = min(only, key=lambda where: pc.sum(where).as_py())
    message = (
        f"“{points}” and “{commas}” have different decimal marks, and each cell tells its own: "
        "all are read as numbers ({rows} with the rarer mark)"
    )
    return [texts.finding("thousands", "info", message, fewer, type="category")]


def _turned(format_: NumberFormat) -> NumberFormat:
    """The format in which the one mark means the other thing."""
    other = other_mark(format_.decimal)
    if format_.group == other:  # `1,234` was 1234
        return replace(format_, decimal=other, group="")
    return replace(format_, decimal=other, group=format_.decimal)


def _affix(texts: Texts, read: Read) -> list[Finding]:
    format_, found = read.guess.format, []
    if format_.scaled:
        message = "suffixes such as K and M multiply: “1.5K” is read as 1500"
        found.append(texts.finding("unit", "info", message, type="category"))
    if not format_.affix:
        return found
    code: Code
    if currency_of(format_.affix):
        code, message = "currency", f"amounts in {format_.affix}: read as numbers"
    elif format_.affix in PERCENT:
        code, message = "percent", "numbers with a percent sign: “12 %” is read as 12"
    else:
        code, message = "unit", f"numbers in {format_.affix}: read without the unit"
    where = pc.and_(pc.is_valid(read.numbers), format_.has_affix(texts.column))
    if pc.any(where).as_py():
        found.append(
            texts.finding(code, "info", message, pc.fill_null(where, False), type="category")
        )
    return found


def _negative(texts: Texts, found: Read) -> list[Finding]:
    if not found.guess.parentheses:
        return []
    where = pc.and_(pc.is_valid(found.numbers), pc.match_substring(texts.column, "("))
    message = "numbers in parentheses are negative: {values} in {rows}"
    return [texts.finding("negative", "info", message, pc.fill_null(where, False), type="category")]


def _two_marks(texts: Texts, column: Column, found: Read, others: Column) -> Understood | None:
    """A category, if the others are numbers with the other decimal mark; else None."""
    format_ = found.guess.format
    left = column.filter(others)
    other = other_mark(format_.decimal)
    turned = replace(format_, decimal=other, group=format_.decimal).read(left)
    if filled(turned) < (1 - MOST_OTHERS) * len(left) or not filled(found.numbers):
        return None
    one = column.filter(pc.is_valid(found.numbers))[0].as_py()
    message = (
        f"“{one}” and “{left[0].as_py()}” have different decimal marks: the column is read as "
        f"category; give one mark, or read what could be either as “{format_}”"
    )
    finding = texts.finding(
        "thousands", "error", message, others, type="number", format=str(format_)
    )
    return Understood(column, ColumnReading(name=texts.name, type="category"), (finding,))


def _several_units(texts: Texts, column: Column, found: Read) -> Understood:
    """A category: numbers in several units cannot be compared."""
    units = found.guess.units
    format_ = str(found.guess.format)
    message = (
        f"numbers in several units ({quoted(units)}) cannot be compared: read as category; give "
        f"one unit, or read only “{ascii_text(format_)}” as numbers"
    )
    code: Code = "currency" if all(map(currency_of, units)) else "unit"
    finding = texts.finding(code, "error", message, type="number", format=format_)
    reading = ColumnReading(name=texts.name, type="category")
    return Understood(column, reading, (finding,))
