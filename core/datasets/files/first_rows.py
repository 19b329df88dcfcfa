"""Whether the first row of a table names its columns, judged by the rows below it."""

import re
from collections.abc import Sequence
from itertools import pairwise

from core.datasets.files.values import is_value
from core.datasets.understanding.missing import KNOWN

MAX_COLUMNS = 1000  # that are looked at
FIRST_YEAR, LAST_YEAR = 1800, 2100
WORDS = frozenset({"true", "false", "yes", "no"})
BRACKETED = re.compile(r"[\[(].*[\])]|%|°[CFK]")


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether more speaks for names than for values. Texts above texts are taken for names."""
    return header_points(first, rows) >= 0


def header_points(first: Sequence[str], rows: Sequence[Sequence[str]]) -> float:
    """What speaks for names in the first row, less what speaks for values, by column."""
    if not rows:
        return -1.0 if all(map(is_value, filter(str.strip, first))) else 1.0
    numbered = are_numbered(first, rows)
    points = 0.0
    for place, cell in enumerate(first[:MAX_COLUMNS]):
        below = [row[place].strip() for row in rows if place < len(row)]
        points += _points(cell.strip(), [text for text in below if text], numbered=numbered)
    return points


def _points(cell: str, below: Sequence[str], *, numbered: bool) -> float:
    if not below or not cell or cell in KNOWN:
        return 0.0
    if is_value(cell):
        return 0.0 if numbered else -float(_typed_share(below) > 0.5)
    if cell.lower() in WORDS:
        return -1.0
    if _typed_share(below) > 0.8:
        return 1.0
    if cell in below:
        return -1.0
    return 0.5 if len(set(below)) <= len(below) / 2 else 0.0


def _typed_share(texts: Sequence[str]) -> float:
    known = [text for text in texts if text not in KNOWN]
    return sum(map(is_value, known)) / len(known) if known else 0.0


def are_numbered(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether names are 0, 1, 2, … (as pandas makes them) or years that follow each other."""
    texts = [cell.strip() for cell in first[:MAX_COLUMNS]]
    numbers = [int(text) for text in texts if re.fullmatch(r"\d{1,4}", text)]
    others = [text for text in texts if is_value(text) and not text.isdigit()]
    if others or len(numbers) < 2 or any(b - a != 1 for a, b in pairwise(numbers)):
        return False
    if numbers[0] == 0:
        return len(numbers) > 2 or not texts[0]
    values = {cell.strip() for row in rows for cell in row[:MAX_COLUMNS]}
    years = numbers[0] >= FIRST_YEAR and numbers[-1] <= LAST_YEAR
    return years and not values & set(texts)


def is_second_header(row: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the row below the names holds units or more names: texts above numbers.

    At least two columns must say so, or one with a unit in brackets: a single text may be a value.
    """
    if len(rows) < 2:
        return False
    above = 0
    for place, cell in enumerate(row[:MAX_COLUMNS]):
        text = cell.strip()
        below = [one[place].strip() for one in rows if place < len(one) and one[place].strip()]
        if is_value(text) or (text and text in below):
            return False
        if below and text and text not in KNOWN and _typed_share(below) > 0.8:
            above += 2 if BRACKETED.fullmatch(text) else 1
    return above >= 2
