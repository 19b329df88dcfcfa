"""A messy file, and what it must become."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.datasets.files.options import DatasetOptions
from core.datasets.understanding.fixes import ColumnFix


@dataclass(frozen=True)
class Said:
    """A finding that there must be.

    Args:
        line: one of its examples must be in this line of the file.
        fix: whether it must have a fix.
    """

    code: str
    column: str | None = None
    line: int | None = None
    fix: bool = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file of the corpus.

    Args:
        content: writes the bytes of the file.
        rows: their number.
        types: of all columns, in order.
        values: the first values of some columns, as JSON; a date without its midnight.
        missing: counts; 0 for columns that are not named.
        levels: all levels of some columns of categories.
        unused: columns that are no features by default.
        reading: part of how the file was read.
        findings: those that there must be. Others may only have the severity `info`.
        also: codes of warnings that may be there besides.
        quiet: codes that must not be there.
        refused: what the message must say if the file cannot be read, as a regular expression.
        target: the column to predict, if the findings are those for it.
    """

    file: str
    content: Callable[[], bytes]
    rows: int | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, set[str]] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()
    reading: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Said] = ()
    also: frozenset[str] = frozenset()
    quiet: frozenset[str] = frozenset()
    options: DatasetOptions = field(default_factory=DatasetOptions)
    fixes: tuple[ColumnFix, ...] = ()
    refused: str | None = None
    target: str | None = None


def text(lines: Sequence[str], encoding: str = "utf-8", end: str = "\n") -> Callable[[], bytes]:
    """A text file of these lines."""
    return lambda: "".join(f"{line}{end}" for line in lines).encode(encoding)


COLOURS = ("red", "green", "blue")
PLAIN = [(1.5 + 0.25 * (5 * i % 16), COLOURS[i * i % 3], 7 * i * i % 23) for i in range(16)]
"""Rows of the columns size, colour and y of the files whose mess is elsewhere."""
PLAIN_TYPES = {"size": "number", "colour": "category", "y": "number"}
PLAIN_VALUES = {
    "size": [1.5, 2.75, 4.0, 5.25],
    "colour": ["red", "green", "green", "red"],
    "y": [0, 7, 5, 17],
}


def plain(delimiter: str, decimal: str = ".") -> list[str]:
    """The lines of these rows, below their header."""
    rows = [(f"{size:.2f}".replace(".", decimal), colour, str(y)) for size, colour, y in PLAIN]
    return [delimiter.join(cells) for cells in [("size", "colour", "y"), *rows]]
