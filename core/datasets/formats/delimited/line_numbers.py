"""The lines of rows in a delimited text: found by arithmetic, or by counting when needed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.pieces import text_lines, whole_lines
from core.datasets.formats.delimited.records import BrokenRecord, records

NEWLINE = ord("\n")


@dataclass(frozen=True)
class LineNumbers:
    """Rows → lines.

    Args:
        pieces: the rows of the file from `first_line` on, in UTF-8.
        num_rows: of the table, with those that were left out at its end.
        num_lines: from `first_line` on.
    """

    pieces: Callable[[], Iterator[bytes]]
    dialect: Dialect
    comment: str | None
    first_line: int
    num_rows: int
    num_lines: int

    def __call__(self, rows: Sequence[int]) -> Sequence[int]:
        """The line in which each row begins, counting from 1; rows count from 0."""
        if self.num_lines == self.num_rows:  # each row is a line
            return [self.first_line + row for row in rows]
        return [self.first_line + int(self._starts[row]) for row in rows]

    @cached_property
    def _starts(self) -> np.ndarray:
        counted = self._counted()
        if len(counted) == self.num_rows:
            return counted
        return self._parsed()

    def _counted(self) -> np.ndarray:
        """Lines that are not blank, no comments, and outside quotes by the parity of quotes."""
        found: list[np.ndarray] = []
        line, inside = 0, 0
        for piece in whole_lines(self.pieces()):
            data = np.frombuffer(piece, np.uint8)
            ends = np.flatnonzero(data == NEWLINE)
            if not piece.endswith(b"\n"):
                ends = np.append(ends, len(data))
            starts = np.concatenate([[0], ends[:-1] + 1])
            begins = ends - starts > (data[np.minimum(starts, len(data) - 1)] == ord("\r"))
            if self.comment:
                begins &= data[np.minimum(starts, len(data) - 1)] != ord(self.comment[:1])
            if self.dialect.quote:
                quotes = np.flatnonzero(data == ord(self.dialect.quote))
                before = np.searchsorted(quotes, starts)
                begins &= (before + inside) % 2 == 0
                inside = (inside + len(quotes)) % 2
            found.append(np.flatnonzero(begins) + line)
            line += len(ends)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _parsed(self) -> np.ndarray:
        """By Python's reader, which is slow."""
        try:
            return np.array(
                [
                    one.line - 1
                    for one in records(text_lines(self.pieces()), self.dialect)
                    if not one.is_blank and not self._is_comment(one.cells[0])
                ]
            )
        except BrokenRecord:
            return np.zeros(self.num_rows, np.int64)

    def _is_comment(self, cell: str) -> bool:
        return self.comment is not None and cell.startswith(self.comment)
