"""The first records of a delimited text, cut by Python's reader: slow, but it counts lines."""

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from core.datasets.formats.delimited.blanks import collapsed
from core.datasets.formats.delimited.dialect import Dialect

MAX_CELL_CHARACTERS = 2**24


@dataclass(frozen=True)
class Record:
    """The cells of a record, and the line it begins in, counting from 1."""

    line: int
    cells: list[str]

    @property
    def is_blank(self) -> bool:
        return not self.cells or (len(self.cells) == 1 and not self.cells[0].strip())


class BrokenRecord(Exception):
    """A record that is not CSV, by the line in which it begins."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line, self.reason = line, reason


def records(lines: Iterable[str], dialect: Dialect, *, strict: bool = False) -> Iterator[Record]:
    """Each record, blank ones included.

    Raises:
        BrokenRecord: a quote is wrong, if `strict`; or a cell is longer than the limit of `csv`.
    """
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    line = 1
    reader = csv.reader(
        map(collapsed, lines) if dialect.runs else lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        doublequote=dialect.escape is None,
        escapechar=dialect.escape,
        skipinitialspace=dialect.padded,
        strict=strict,
    )
    try:
        for cells in reader:
            yield Record(line, cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise BrokenRecord(line, str(error)) from error


def of_text(text: str, dialect: Dialect) -> list[Record]:
    """The records of a text; what cannot be cut is left out."""
    found: list[Record] = []
    with suppress(BrokenRecord):
        found.extend(records(io.StringIO(text, newline=""), dialect))
    return found
