"""A column of texts as its file writes them, and the places of some of its cells."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column
from core.datasets.files.source import Lines
from core.datasets.findings.finding import MAX_EXAMPLES, Example, examples_of
from core.datasets.understanding.missing import words

SAMPLE = 1000  # texts; from the beginning, and as many from the whole column


@dataclass(frozen=True)
class Texts:
    """The cells of one column; null is an empty cell.

    Args:
        column: large strings.
        lines: where the rows are in the file.
    """

    name: str
    column: Column
    lines: Lines

    def examples(self, wanted: Column) -> tuple[Example, ...]:
        """The first cells for which `wanted` is true."""
        rows = self.rows(wanted)
        return examples_of(self.lines(rows), [self.column[row].as_py() for row in rows])

    def rows(self, wanted: Column) -> list[int]:
        """The first rows for which `wanted` is true, counting from 0."""
        found: Any = pc.indices_nonzero(wanted)
        return list(found.slice(0, MAX_EXAMPLES).to_pylist())


def trimmed(column: Column) -> Column:
    """Without blanks of any kind at both ends."""
    return pc.utf8_trim(column, " \t\r\n\v\f\u00a0\u2007\u2009\u202f\u3000\u200b\ufeff")


def without(column: Column, missing: tuple[str, ...]) -> Column:
    """With null where the text is one of `missing`."""
    found = pc.is_in(column, words(missing))
    return pc.if_else(found, pa.scalar(None, column.type), column)


def sample(column: Column) -> list[str]:
    """Some different texts of the column, in the order in which they come."""
    first = column.drop_null() if column.null_count else column
    some: list[Any] = first.slice(0, SAMPLE).to_pylist()
    if len(first) > SAMPLE:
        step = max(1, len(first) // SAMPLE)
        places = pa.array(range(SAMPLE, len(first), step))
        some += first.take(places).to_pylist()
    return list(dict.fromkeys(some))
