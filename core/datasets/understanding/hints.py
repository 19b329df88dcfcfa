"""What the whole file tells about the decimal mark and the order of day and month."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.datasets.files.source import Source
from core.datasets.understanding.number_formats import ascii_text

MOST_COLUMNS = 500  # looked at
MOST_ROWS = 200  # of each
_COMMA = re.compile(r"\D{0,4}\d+,(?!\d{3}\b)\d+\D{0,4}|\D{0,4}\d{1,3}(?:\.\d{3})+,\d+\D{0,4}|0,\d+")
_POINT = re.compile(
    r"\D{0,4}\d+\.(?!\d{3}\b)\d+\D{0,4}|\D{0,4}\d{1,3}(?:,\d{3})+\.\d+\D{0,4}|0\.\d+"
)
_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(?:\d{4}|\d{2})(?!\d)")


@dataclass(frozen=True)
class Hints:
    """Answers for the columns that do not tell on their own.

    Args:
        decimal: the decimal mark; None if the file does not show it.
        day_first: whether the day comes before the month.
    """

    decimal: str | None = None
    day_first: bool = False


def hints_of(source: Source) -> Hints:
    """What the columns that tell, and the options, say about the others."""
    points = commas = days = months = 0
    for texts in _samples(source):
        points += any(map(_POINT.fullmatch, texts))
        commas += any(map(_COMMA.fullmatch, texts))
        orders = [_order(text) for text in texts]
        days += "day" in orders
        months += "month" in orders
    decimal = source.reading.decimal
    if decimal is None and bool(points) != bool(commas):
        decimal = "," if commas else "."
    day_first = days > months or (days == months and decimal == ",")
    return Hints(decimal, day_first)


def _samples(source: Source) -> Iterator[list[str]]:
    names = [name for name in source.table.column_names if source.has_texts(name)]
    for name in names[:: max(1, len(names) // MOST_COLUMNS)]:
        values: list[Any] = source.table.column(name).slice(0, MOST_ROWS).to_pylist()
        yield [ascii_text(value) for value in values if value and not value.isdigit()]


def _order(text: str) -> str:
    found = _DATE.match(text)
    if found is None or found[2] == ".":
        return ""
    if int(found[1]) > 12:
        return "day"
    return "month" if int(found[3]) > 12 else ""
