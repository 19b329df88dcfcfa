"""Rows that repeat the header, as in files that were appended to each other."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from core.datasets.files.source import Lines
from core.datasets.findings.finding import Finding, examples_of
from core.datasets.formats.delimited.head import Head
from core.datasets.understanding.kernels import pc
from models.messages import counted

MARK = "\ufeff"  # of byte order, which a file brings along


def without(
    table: pa.Table, head: Head, lines: Lines
) -> tuple[pa.Table, Lines, tuple[Finding, ...]]:
    """The table without such rows, the lines of the rest, and what is said.

    With one column, the header's word may be a value.
    """
    found = _rows(table, head) if head.layout.header and table.num_columns > 1 else []
    if not found or len(found) == table.num_rows:
        return table, lines, ()
    finding = Finding(
        code="lines_left_out",
        severity="warning",
        message=f"{counted(len(found), 'line')} among the rows, repeating the header, left out",
        rows=len(found),
        examples=examples_of(lines(found), [str(table.column(0)[row]) for row in found]),
    )
    kept = np.delete(np.arange(table.num_rows), found)

    def lines_of(rows: Sequence[int]) -> Sequence[int]:
        return lines([int(kept[row]) for row in rows])

    return table.take(kept), lines_of, (finding,)


def _rows(table: pa.Table, head: Head) -> list[int]:
    header = [cell.strip() for cell in head.layout.aligned]
    starts = pa.array([head.layout.aligned[0], MARK + header[0]], pa.string())
    likely = pc.indices_nonzero(pc.is_in(table.column(0), starts)).to_pylist()
    return [row for row in likely if _cells(table, row) == header]


def _cells(table: pa.Table, row: int) -> list[str]:
    return [(column[row].as_py() or "").strip().strip(MARK) for column in table.columns]
