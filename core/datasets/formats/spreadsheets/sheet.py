"""The rows of a sheet: cells that are merged or hold errors are filled, blank rows left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from python_calamine import CalamineSheet

from core.datasets.formats.spreadsheets.empty_cells import EmptyCells
from core.datasets.formats.spreadsheets.layout import Row
from core.exceptions import NotParseable

MAX_LINES = 2**20  # of Excel and LibreOffice


@dataclass
class Sheet:
    """A sheet's rows.

    Args:
        empty: what is in cells that seem empty.
        filled: lines whose cells were filled from merged cells above; complete after all rows.
    """

    sheet: CalamineSheet
    empty: EmptyCells
    filled: list[int] = field(default_factory=list)

    @property
    def left(self) -> int:
        """The first column that is not blank."""
        return self.sheet.start[1] if self.sheet.start else 0

    def rows(self) -> Iterator[Row]:
        """The rows that are not blank. Raises `NotParseable` if there are more than may be."""
        if self.sheet.total_height > MAX_LINES:
            raise NotParseable(
                f"sheet {self.sheet.name!r} has {self.sheet.total_height} lines; workbooks have "
                f"at most {MAX_LINES}: it is damaged"
            )
        merged = _Merged(self.sheet.merged_cell_ranges or (), self.left)
        for number, cells in enumerate(self.sheet.iter_rows()):
            self._put_errors(number, cells)
            if merged.fill(number, cells):
                self.filled.append(number + 1)
            if any(cell is not None and cell != "" for cell in cells):
                yield number + 1, cells

    def _put_errors(self, number: int, cells: list[Any]) -> None:
        for column, text in self.empty.errors.get(number, {}).items():
            place = column - self.left
            if 0 <= place < len(cells) and cells[place] == "":
                cells[place] = text


class _Merged:
    """Cells that are merged downwards: their value counts for all rows that they span."""

    def __init__(self, ranges: Sequence[Any], left: int) -> None:
        spans = [
            (top, bottom, column - left)
            for (top, column), (bottom, last) in ranges
            if bottom > top and last == column
        ]
        self._waiting = sorted(spans, reverse=True)
        self._active: list[tuple[int, int, Any]] = []

    def fill(self, number: int, cells: list[Any]) -> bool:
        """Fill the empty cells of a row. Returns whether there were any."""
        self._active = [one for one in self._active if one[0] >= number]
        filled = False
        for _, place, value in self._active:
            if place < len(cells) and cells[place] == "":
                cells[place], filled = value, True
        while self._waiting and self._waiting[-1][0] <= number:
            _, bottom, place = self._waiting.pop()
            if 0 <= place < len(cells) and cells[place] != "":
                self._active.append((bottom, place, cells[place]))
        return filled
