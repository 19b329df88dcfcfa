"""A column of texts as its owner says that it is."""

from typing import Any, NoReturn

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.understanding import (
    boolean_columns,
    booleans,
    levels,
    number_columns,
)
from core.datasets.understanding.dates import columns as date_columns
from core.datasets.understanding.dates.formats import SINCE, DateFormat
from core.datasets.understanding.dates.guess import guess as guess_dates
from core.datasets.understanding.fixes import ColumnFix
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import ALWAYS, CLEAR, KNOWN, NO_NUMBERS
from core.datasets.understanding.number_formats import NumberFormat
from core.datasets.understanding.number_guess import NumberGuess
from core.datasets.understanding.number_guess import guess as guess_numbers
from core.datasets.understanding.texts import Texts, filled, lost, sample, trimmed, without
from core.datasets.understanding.understood import Understood
from core.exceptions import Invalid
from models.features.columns import ColumnReading


def type_of(fix: ColumnFix | None) -> str | None:
    """The type that a fix says or, by its format, means."""
    if fix is None or fix.type is not None or fix.format is None:
        return fix.type if fix else None
    if fix.format == levels.EXACT:
        return "category"
    if "%" in fix.format.rstrip("% ") or fix.format in SINCE:
        return "datetime"
    return "boolean" if fix.format.count("/") == 1 and "234" not in fix.format else "number"


def read(texts: Texts, fix: ColumnFix, hints: Hints, pointer: str) -> Understood:
    """The column as `fix` says.

    Args:
        pointer: JSON pointer of the fix.

    Raises:
        Invalid: no text, or for booleans some text, can be read so; or the format is none.
    """
    missing = fix.missing or ()
    match type_of(fix):
        case "number":
            return _number(texts, fix, hints, pointer)
        case "datetime":
            return _datetime(texts, fix, hints, pointer)
        case "boolean":
            return _boolean(texts, fix, pointer)
        case "text":
            column = without(texts.column, missing) if missing else texts.column
            return Understood(column, ColumnReading(name=texts.name, type="text"))
    if fix.format not in (None, levels.EXACT):
        raise Invalid([(f"{pointer}/format", f"a category has the format {levels.EXACT} or none")])
    if fix.format:
        return levels.exact(texts, missing)
    return levels.read(texts, missing, words=usual_words(fix))


def usual_words(fix: ColumnFix | None) -> tuple[str, ...]:
    """The usual texts for a missing value among levels, without those that are known to be levels.

    If the owner says that no text stands for a missing value, only an empty cell does.
    """
    if fix is None:
        return CLEAR
    if fix.missing is not None and not fix.missing:
        return ("",)
    usual = CLEAR if fix.missing is None or type_of(fix) is None else ALWAYS
    return tuple(word for word in usual if word not in (fix.levels or {}))


def _number(texts: Texts, fix: ColumnFix, hints: Hints, pointer: str) -> Understood:
    column = without_zeros(_tidy(texts, fix))
    known = without(column, NO_NUMBERS)
    try:
        given = fix.format and NumberGuess(NumberFormat.parse(fix.format))
    except ValueError as error:
        raise Invalid([(f"{pointer}/format", str(error))]) from error
    guess = given or guess_numbers(sample(known), hints.decimal) or NumberGuess(NumberFormat())
    if given:
        read = number_columns.Read(given.format.read_clear(known), given)
    else:
        found = number_columns.Read(guess.format.read(known), guess)
        read = number_columns.most_read(known, found)
    if filled(known) and not filled(read.numbers):
        advice = _other_mark(known, guess.format)
        _refuse(texts, lost(known, read.numbers), "number", pointer, advice)
    return number_columns.understood(texts, column, read, hints)


def _datetime(texts: Texts, fix: ColumnFix, hints: Hints, pointer: str) -> Understood:
    column = _tidy(texts, fix)
    known = without(column, KNOWN)
    if fix.format is None and (found := date_columns.read(texts, column, hints)):
        return found
    try:
        format_ = DateFormat.parse(fix.format)
    except ValueError as error:
        raise Invalid([(f"{pointer}/format", str(error))]) from error
    if fix.format is None and (guess := guess_dates(sample(known), day_first=hints.day_first)):
        format_ = date_columns.formats(known, guess)[0]
    found = date_columns.understood(texts, column, known, format_)
    if filled(known) and not filled(found.column):
        _refuse(texts, lost(known, found.column), f"datetime ({format_.expected})", pointer)
    return found


def _boolean(texts: Texts, fix: ColumnFix, pointer: str) -> Understood:
    known = without(_tidy(texts, fix), CLEAR)
    try:
        given = booleans.of_format(fix.format) if fix.format else None
    except ValueError as error:
        raise Invalid([(f"{pointer}/format", str(error))]) from error
    counts = {} if given else boolean_columns.counts_of(known)
    family = given or booleans.find(counts) or booleans.Words(("1",), ("0",), stays=False)
    bits = booleans.bits_of(family, known)
    if filled(bits) < filled(known):
        _refuse(texts, lost(known, bits), f"boolean ({'/'.join(_pair(family))})", pointer)
    return boolean_columns.understood(texts, known, known, family)


def without_zeros(column: Column) -> Column:
    """Codes as numbers: without leading zeros."""
    return pc.replace_substring_regex(column, r"^([+-]?)0+([0-9])", r"\1\2")


def _tidy(texts: Texts, fix: ColumnFix) -> Column:
    missing = (*ALWAYS, *(fix.missing or ()))
    return without(trimmed(without(texts.column, missing)), missing)


def _pair(family: booleans.Words) -> tuple[str, str]:
    return family.true[0], family.false[0]


def _other_mark(known: Column, format_: NumberFormat) -> str:
    """What to set if the texts are numbers with the other decimal mark."""
    other = format_.with_decimal("." if format_.decimal == "," else ",")
    if not filled(other.read(known)):
        return ""
    advice = f"set decimal={other.decimal!r}, or the format {other} if you set one"
    return f", and numbers are read as {format_}: {advice}"


def _refuse(texts: Texts, where: Any, type_: str, pointer: str, advice: str = "") -> NoReturn:
    line, value = texts.line(where)
    message = f"column {texts.name!r} is no {type_}: line {line} holds {value!r}{advice}"
    raise Invalid([(f"{pointer}/type", message)])


def as_texts(column: Column) -> Column:
    """Values that a file declares, as the texts of a text file."""
    if pa.types.is_floating(column.type):
        whole = pc.all(pc.equal(column, pc.floor(column))).as_py()
        small = pc.all(pc.less(pc.abs(column), 2**53)).as_py()
        column = column.cast(pa.int64()) if whole and small else column
    return column.cast(pa.large_string())
