"""Texts that mean a quantity and are read as levels: what they look like, said to their owner."""

import re
from dataclasses import dataclass

from core.datasets.columns import Column
from core.datasets.findings.finding import Finding
from core.datasets.understanding import number_columns
from core.datasets.understanding.dates import columns as date_columns
from core.datasets.understanding.dates.guess import guess as guess_dates
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.number_formats import NumberFormat, ascii_column
from core.datasets.understanding.texts import Texts, filled, sample

LEAST_SHARE = 0.3  # of the filled cells; fewer numbers or dates among words are no quantity
LEAST_TRIED = 0.05  # of the different texts; below it, no column is searched for numbers
MOST = 0.9  # of the different texts, when all should look alike
MAX_LENGTH = 1000  # characters that are looked at
FEW_NUMBERS = 3  # different ones, of which a category may be made
_BEGINS_LIKE_NUMBER = r"^[^\pL<>~≤≥±]{0,3}[0-9]"
_DAYS = r"[+-]?(?:[0-9]+ ?(?:d|days?)[ ,]+)?"

_TIMES = (
    rf"{_DAYS}[0-9]{{1,3}}:[0-5]?[0-9](:[0-5]?[0-9])?([.,][0-9]+)?( ?[AaPp]\.?[Mm]\.?)?"
    r"|P([0-9]+[YMWD])*(T([0-9.]+[HMS])+)?"
    r"|([0-9.]+ ?(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)[ ,]*){2,}"
)


@dataclass(frozen=True)
class _Kind:
    """A kind of text, and what to give in its place."""

    what: str
    pattern: str
    instead: str


_KINDS = tuple(
    _Kind(what, f"^(?:{pattern})$", instead)
    for what, pattern, instead in (
        (
            "times of day or durations",
            _TIMES,
            "seconds or hours as numbers",
        ),
        (
            "coordinates in degrees",
            r"[NSEWO]? ?[+-]?[0-9.,]+ ?°[^,;\[{]*",
            "degrees as decimal numbers",
        ),
        ("lists or records", r"\[[\s\S]*\]|\{[\s\S]*\}", "a column for each value"),
        (
            "pairs of numbers",
            r"\(?[+-]?[0-9]+(\.[0-9]+)?\s*[,;]\s*[+-]?[0-9]+(\.[0-9]+)?\)?",
            "a column for each number",
        ),
        (
            "numbers with signs beside them",
            r"[<>~≤≥±=]*\s*[+-]?[0-9]+([.,][0-9]+)?(([eE]|\s?[x×*]\s?10\^?)[+-]?[0-9]+)?\s?[*†‡?]*",
            "numbers alone",
        ),
    )
)


def findings(texts: Texts, column: Column, hints: Hints) -> list[Finding]:
    """A finding if a category's texts are partly numbers or dates, or quantities of other kinds.

    Args:
        column: the texts without those that stand for a missing value.
    """
    some = sample(column)
    if len(some) <= FEW_NUMBERS or not any(c.isdigit() for text in some for c in text):
        return []
    return (
        _dates(texts, column, hints, some)
        or _numbers(texts, column, hints, some)
        or _kind(texts, column, some)
    )


def _dates(texts: Texts, column: Column, hints: Hints, some: list[str]) -> list[Finding]:
    found = guess_dates(some, day_first=hints.day_first)
    if found is None or "%y" in found.format:  # versions look like dates of short years
        return []
    format_ = date_columns.formats(column, found)[0]
    read = format_.read(column)
    count = filled(read)
    if count < LEAST_SHARE * filled(column):
        return []
    message = (
        f"{count} of {filled(column)} texts are dates such as {format_.example}; {{values}} in "
        "{rows} are not: read as category; as dates, these would be missing"
    )
    return [
        texts.finding(
            "mostly_dates",
            "warning",
            message,
            _others(column, read),
            type="datetime",
            format=format_.text,
        )
    ]


def _numbers(texts: Texts, column: Column, hints: Hints, some: list[str]) -> list[Finding]:
    """Codes are no numbers, and neither are a few numbers that stand for levels."""
    if sum(any(c.isdigit() for c in text[:4]) for text in some) < LEAST_TRIED * len(some):
        return []
    likely = column.filter(pc.match_substring_regex(ascii_column(column), _BEGINS_LIKE_NUMBER))
    found = number_columns.parse(likely, hints) if filled(likely) else None
    if found is None or found.guess.units:
        return []
    read = found.guess.format.read(column)
    enough = filled(read) >= LEAST_SHARE * filled(column)
    if not enough or len(pc.unique(read.drop_null())) < FEW_NUMBERS:
        return []
    format_ = found.guess.format
    change = {} if format_ == NumberFormat() else {"format": str(format_)}
    message = (
        f"{filled(read)} of {filled(column)} texts are numbers; {{values}} in {{rows}} are not: "
        "read as category; as numbers, these would be missing"
    )
    others = _others(column, read)
    return [texts.finding("mostly_numeric", "warning", message, others, type="number", **change)]


def _others(column: Column, read: Column) -> Column:
    return pc.and_(pc.is_valid(column), pc.is_null(read))


def _kind(texts: Texts, column: Column, some: list[str]) -> list[Finding]:
    for kind in _KINDS:
        pattern = re.compile(kind.pattern)
        if sum(pattern.match(text[:MAX_LENGTH]) is not None for text in some) >= MOST * len(some):
            message = (
                f"{kind.what} such as {{values}} are read as category: their sizes are lost; give "
                f"{kind.instead}, or leave the column out"
            )
            return [texts.finding("unread", "warning", message, pc.is_valid(column), use=False)]
    return []
