"""Usable names of columns from the cells of a header."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from core.datasets.files.layout import Layout

ROW_NAME = "row"
INDEX = re.compile(r"Unnamed: 0(\.\d+)?")  # what pandas calls an index that was written before


def clean(cell: str) -> str:
    """A name without blanks at its ends, byte-order mark and line breaks."""
    return re.sub(r"\s*[\r\n]+\s*", " ", cell.strip().strip("\ufeff\u200b\u00a0").strip())


def is_unnamed(name: str) -> bool:
    """Whether a first column has no name of its own."""
    return not name or INDEX.fullmatch(name) is not None


def distinct(cells: Sequence[str]) -> list[str]:
    """A name for each cell: `column_3` for the third if empty, `a_2` for the second `a`."""
    cleaned = [clean(cell) for cell in cells]
    taken = set(cleaned)
    seen: set[str] = set()
    names: list[str] = []
    for place, name in enumerate(cleaned, start=1):
        chosen = name or unused(f"column_{place}", taken)
        if chosen in seen:
            chosen = unused(chosen, taken)
        seen.add(chosen)
        taken.add(chosen)
        names.append(chosen)
    return names


def unused(name: str, taken: set[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, … that is not taken."""
    if name not in taken:
        return name
    return next(one for one in (f"{name}_{n}" for n in count(2)) if one not in taken)


@dataclass(frozen=True)
class Named:
    """The names of all columns.

    Args:
        unnamed: places of the columns that the file gives no name.
        changed: (what the file says, the name) where they differ by more than blanks.
    """

    names: list[str]
    unnamed: frozenset[int]
    changed: list[tuple[str, str]]


def of_layout(layout: Layout) -> Named:
    """Names for the columns of a layout."""
    cells = [clean(cell) for cell in layout.aligned]
    if layout.joined:
        cells = joined(cells, [clean(cell) for cell in layout.second])
    names = distinct(cells)
    unnamed = frozenset(
        place for place, cell in enumerate(cells) if not cell or (place == 0 and is_unnamed(cell))
    )
    changed = [
        (cell, name)
        for place, (cell, name) in enumerate(zip(layout.aligned, names, strict=True))
        if cell.strip() != name and place not in unnamed
    ]
    return Named(names, unnamed, changed)


def joined(tops: Sequence[str], subs: Sequence[str]) -> list[str]:
    """Names of two rows: an empty cell of the upper row repeats the one before."""
    found, last = [], ""
    for top, sub in zip(tops, subs, strict=True):
        last = top or last
        found.append(f"{last} {sub}".strip())
    return found
