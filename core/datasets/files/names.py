"""Usable names of columns from the cells of a header."""

import re
from collections.abc import Iterator, Sequence
from itertools import count

from core.datasets.findings.finding import Finding
from core.names import MAX_NAME_LENGTH

MAX_CUT = MAX_NAME_LENGTH - 16  # so that a number fits behind it
ROW_NAME = "row"
INDEX = re.compile(r"Unnamed: 0(\.\d+)?")  # what pandas calls an index that was written before


def clean(cell: str) -> str:
    """A name without blanks at its ends, byte-order mark and line breaks, cut where too long."""
    name = re.sub(r"\s*[\r\n]+\s*", " ", cell.strip().strip("\ufeff\u200b\u00a0").strip())
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_CUT - 2].strip() + " …"


def is_unnamed(name: str) -> bool:
    """Whether a first column has no name of its own."""
    return not name or INDEX.fullmatch(name) is not None


def distinct(cells: Sequence[str]) -> list[str]:
    """A name for each cell: `column_3` for the third if empty, `a_2` for the second `a`."""
    cleaned, names = [clean(cell) for cell in cells], list[str]()
    taken, seen = set(cleaned), set[str]()
    numbers: dict[str, Iterator[int]] = {}  # a million equal names then take a million steps
    for place, name in enumerate(cleaned, start=1):
        chosen = name or unused(f"column_{place}", taken)
        if chosen in seen:
            chosen = unused(chosen, taken, numbers.setdefault(chosen, count(2)))
        seen.add(chosen)
        taken.add(chosen)
        names.append(chosen)
    return names


def unused(name: str, taken: set[str], numbers: Iterator[int] | None = None) -> str:
    """The name, or the first of `name_2`, `name_3`, … that is not taken.

    Args:
        numbers: those that were not tried before.
    """
    if name not in taken:
        return name
    tried = (f"{name}_{n}" for n in (count(2) if numbers is None else numbers))
    return next(one for one in tried if one not in taken)


def joined(tops: Sequence[str], subs: Sequence[str]) -> list[str]:
    """Names of two rows: an empty cell of the upper row repeats the one before."""
    found, last = [], ""
    for top, sub in zip(tops, subs, strict=True):
        last = top or last
        found.append(f"{last} {sub}".strip())
    return found


def left_out_index(name: str, *, unnamed: bool) -> Finding:
    """Of a first column that holds the places of the rows."""
    what = "which has no name and counts the rows," if unnamed else f"{name!r},"
    return Finding(
        code="index",
        severity="info",
        message=f"the first column, {what} was left out as an index: set index=false to keep it",
    )
