"""What a reader found in a file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from core.datasets.columns.place import Column
from core.datasets.columns.strings import is_string
from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.files.spilled import Spill
from core.datasets.findings.finding import Finding

Lines: TypeAlias = Callable[[Sequence[int]], Sequence[int]]
"""Rows, counting from 0 → their lines in the file, counting from 1."""


def row_numbers(rows: Sequence[int]) -> Sequence[int]:
    """The lines of a file without lines: the number of the row, counting from 1."""
    return [row + 1 for row in rows]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file's columns before they are understood.

    Args:
        table: columns of strings, as the file writes them, or of the types that the file declares.
        reading: how the file was read.
        lines: where the rows are in the file; called for a few examples.
        typed: whether the file declares types, so that its strings are strings (Parquet, Arrow),
            not numbers and dates that a text file can only write as text (CSV).
        mixed: columns of texts although the file declares types: their cells have several.
        findings: on the file as a whole, such as a missing header.
        spill: where its columns go once they are understood; None if they stay in memory.
    """

    table: pa.Table
    reading: Reading = field(default_factory=Reading)
    lines: Lines = row_numbers
    typed: bool = True
    mixed: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    spill: Spill | None = None

    @property
    def keep(self) -> Callable[[Column], Column]:
        """What puts a column where it stays."""
        return _in_memory if self.spill is None else self.spill.column

    def has_texts(self, name: str) -> bool:
        """Whether the strings of a column are texts that may mean numbers, dates or words."""
        is_text = is_string(self.table.schema.field(name).type)
        return is_text and (not self.typed or name in self.mixed)


def _in_memory(column: Column) -> Column:
    return column


Reader: TypeAlias = Callable[[Path, int, ReadingOptions], Source]
"""`(path, max_bytes, options) -> source`: raises `NotParseable`, `Invalid` and `TooLarge`."""
