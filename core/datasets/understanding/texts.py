"""A column of texts as its file writes them, and what is said about some of its cells."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.files.source import Lines
from core.datasets.findings.finding import (
    MAX_EXAMPLES,
    Code,
    Finding,
    Severity,
    examples_of,
    fix_column,
)
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import words
from models.messages import counted

SAMPLE = 1000  # texts; from the beginning, and as many from the whole column
BLANKS = " \t\r\n\v\f\u00a0\u2007\u2009\u202f\u3000\u200b\ufeff\0"
MAX_LISTED = 5


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

    def finding(
        self,
        code: Code,
        severity: Severity,
        message: str,
        where: Any = None,
        **fix: Any,
    ) -> Finding:
        """A finding about the cells for which `where` is true, by default all that are filled.

        Args:
            message: `{rows}` stands for their number, `{values}` for some of their texts.
            fix: what to change in how the column is read; nothing if empty.
        """
        marked = pc.is_valid(self.column) if where is None else where
        rows = int(pc.sum(marked).as_py() or 0)
        if "{values}" in message:
            message = message.replace("{values}", self._listed(marked))
        return Finding(
            code=code,
            severity=severity,
            column=self.name,
            message=f"column {self.name!r}: " + message.replace("{rows}", counted(rows, "row")),
            rows=rows,
            examples=examples_of(*self._first(marked, different=fix.get("missing") == [])),
            fix=fix_column(self.name, **fix) if fix else None,
        )

    def line(self, where: Any) -> tuple[int | None, str]:
        """The line and the text of the first cell for which `where` is true."""
        lines, values = self._first(where)
        return lines[0], values[0]

    def _first(self, where: Any, *, different: bool = False) -> tuple[list[int | None], list[str]]:
        """The first cells for which `where` is true, with `different` one of each text before."""
        found: Any = pc.indices_nonzero(where)
        rows = list(found.slice(0, MAX_EXAMPLES).to_pylist())
        if different:
            cells = self.column.take(found).combine_chunks()
            texts = pc.unique(cells).slice(0, MAX_EXAMPLES)
            of_each = found.take(pc.index_in(texts, cells)).to_pylist()
            rows = sorted(list(dict.fromkeys([*of_each, *rows]))[:MAX_EXAMPLES])
        return list(self.lines(rows)), [str(self.column[row].as_py()) for row in rows]

    def _listed(self, where: Any) -> str:
        different = pc.unique(self.column.filter(where))
        return quoted(different.slice(0, MAX_LISTED + 1).to_pylist())


def quoted(values: Iterable[Any]) -> str:
    """A few values in quotes, with commas between them."""
    given = list(values)
    more = " …" if len(given) > MAX_LISTED else ""
    return ", ".join(f"“{str(value)[:40]}”" for value in given[:MAX_LISTED]) + more


def trimmed(column: Column) -> Column:
    """Without blanks of any kind at both ends."""
    return pc.utf8_trim(column, BLANKS)


def without(column: Column, missing: tuple[str, ...]) -> Column:
    """With null where the text is one of `missing`."""
    found = pc.is_in(column, words(missing))
    return kept(column, pc.invert(found)) if pc.any(found).as_py() else column


def kept(column: Column, where: Column) -> Column:
    """With null where `where` is not true."""
    return pc.if_else(pc.fill_null(where, False), column, pa.scalar(None, column.type))


def lost(before: Column, after: Column) -> Column:
    """Where a value became null."""
    return pc.and_(pc.is_valid(before), pc.is_null(after))


def filled(column: Column) -> int:
    """The number of cells that are not null."""
    return len(column) - column.null_count


def sample(column: Column) -> list[str]:
    """Some different texts of the column, in the order in which they come."""
    first = column.drop_null() if column.null_count else column
    some: list[Any] = first.slice(0, SAMPLE).to_pylist()
    if len(first) > SAMPLE:
        step = max(1, len(first) // SAMPLE)
        places = pa.array(range(SAMPLE, len(first), step))
        some += first.take(places).to_pylist()
    return list(dict.fromkeys(some))
