"""The names of a delimited text's columns."""

from dataclasses import dataclass

from core.datasets.columns.place import check_count
from core.datasets.files.names import clean, distinct, is_unnamed, joined
from core.datasets.formats.delimited.layout import Layout


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
    """Names for the columns of a layout. Raises `Invalid` for too many columns."""
    check_count(len(layout.aligned))
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
