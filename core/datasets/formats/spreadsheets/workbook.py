"""Reads a workbook: chooses the sheet, then its rows become columns. To be run with limits."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from core.datasets.files.names import ROW_NAME, left_out_index, unused
from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.formats.mixing import Pieces
from core.datasets.formats.spreadsheets.empty_cells import find_empty_cells
from core.datasets.formats.spreadsheets.layout import (
    Layout,
    Row,
    below_table,
    find_layout,
    left_out_below,
)
from core.datasets.formats.spreadsheets.sheet import Sheet
from core.exceptions import Invalid, NotParseable
from models.messages import counted

PREVIEW = 200  # rows by which the layout is found
BATCH = 2**12
TAIL = 20  # rows in which notes and totals are looked for
CALCULATE = "open the file in a spreadsheet program, save it and upload it again"
NO_ROWS = "the workbook has no rows: give at least one"


def read(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
    """Read one sheet of a workbook.

    Raises:
        NotParseable: it is not a workbook, is encrypted, or has no sheet with rows.
        Invalid: there is no such sheet.
    """
    try:
        with CalamineWorkbook.from_path(path) as book:
            name, sheet, others = _choose(book, options)
            place = book.sheet_names.index(name)
            empty = find_empty_cells(path, place)
            return _source(Sheet(sheet, empty), name, others, options)
    except PasswordError as error:
        raise NotParseable("the workbook has a password: send it without one") from error
    except CalamineError as error:
        raise NotParseable(
            "the file is not a workbook that is read (xlsx, xlsm, xlsb, xls, ods), is damaged or "
            f"has a password ({str(error)[:100]})"
        ) from error


def _choose(
    book: CalamineWorkbook, options: ReadingOptions
) -> tuple[str, CalamineSheet, list[str]]:
    """The sheet, by default the first with a table, and the names of the others."""
    sheets = [one for one in book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
    known = [one.name for one in sheets]
    if options.sheet is not None:
        if options.sheet not in known:
            listed = ", ".join(map(repr, known[:50]))
            raise Invalid([("sheet", f"there is no sheet {options.sheet!r}: there are {listed}")])
        return options.sheet, book.get_sheet_by_name(options.sheet), []
    shown = [one.name for one in sheets if one.visible == SheetVisibleEnum.Visible] or known
    some: tuple[str, CalamineSheet] | None = None
    for name in shown:
        sheet = book.get_sheet_by_name(name)
        if sheet.height > 1 and sheet.width > 1:
            return name, sheet, [other for other in shown if other != name]
        if some is None and sheet.height:
            some = name, sheet
    if some is None:
        raise Invalid([("/columns", NO_ROWS)])
    return *some, [other for other in shown if other != some[0]]


def _source(sheet: Sheet, name: str, others: Sequence[str], options: ReadingOptions) -> Source:
    rows = sheet.rows()
    preview = list(islice(rows, PREVIEW))
    if not preview:
        raise Invalid([("/columns", NO_ROWS)])
    layout = find_layout(preview, options)
    table = _Table(layout)
    table.read(chain(preview[layout.rows :], rows))
    arrow, index, findings = table.finish(options)
    lines = table.lines
    reading = Reading(sheet=name, header=layout.header, skip=layout.skip, index=index)
    doubts = [one for one in layout.findings() if options.header is None or one.fix is None]
    said = [*_on_sheets(name, others), *doubts, *findings, *_on_merged(sheet.filled)]
    said += _on_formulas(sheet, layout.names, lines)
    return Source(
        table=arrow,
        reading=reading,
        lines=lambda wanted: [lines[row] for row in wanted],
        typed=False,
        findings=tuple(said),
    )


class _Table:
    """Columns that grow by the rows of a sheet."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._pieces = [Pieces() for _ in layout.names]
        self._durations: set[int] = set()
        self._below: list[Row] = []
        self.lines: list[int] = []

    def read(self, rows: Iterator[Row]) -> None:
        """Take all rows but notes and totals at the end."""
        held: list[Row] = []
        for row in rows:
            held.append(row)
            if len(held) == BATCH + TAIL:
                self._add(held[:BATCH])
                held = held[BATCH:]
        count = below_table(held[-TAIL:], len(self._pieces))
        end = len(held) - count
        self._below = held[end:]
        self._add(held[:end])

    def finish(self, options: ReadingOptions) -> tuple[pa.Table, bool, list[Finding]]:
        """The table, whether an index was left out, and what the owner should know."""
        found = [left_out_below(self._below)] if self._below else []
        columns = {i: piece.column() for i, piece in enumerate(self._pieces)}
        layout, names = self._layout, list(self._layout.names)
        if layout.header:
            empty = [i for i in layout.unnamed if _is_empty(columns[i])]
            columns = {i: c for i, c in columns.items() if i not in empty} or columns
        index = self._index(columns, options)
        if index is not None:
            found.append(left_out_index(names[index], unnamed=index in layout.unnamed))
            del columns[index]
        elif 0 in layout.unnamed and layout.header and 0 in columns:
            names[0] = unused(ROW_NAME, set(names[1:]))
        found += [_on_durations(names[i]) for i in sorted(self._durations) if i in columns]
        kept: list[Any] = list(columns.values())
        return pa.table(kept, names=[names[i] for i in columns]), index is not None, found

    def _index(self, columns: dict[int, Any], options: ReadingOptions) -> int | None:
        """The place of a first column that only counts the rows, or that the caller names so."""
        first = min(columns)
        if len(columns) < 2 or options.index is False:
            return None
        if options.index or (self._layout.header and first in self._layout.unnamed):
            return first if options.index or _counts(columns[first]) else None
        return None

    def _add(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        self.lines += [line for line, _ in rows]
        columns = zip(*(cells for _, cells in rows), strict=True)
        for place, (pieces, cells) in enumerate(zip(self._pieces, columns, strict=True)):
            values = [None if _is_blank(cell) else cell for cell in cells]
            if timedelta in set(map(type, values)):
                self._durations.add(place)
            pieces.add(values)


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_empty(column: Any) -> bool:
    return bool(column.null_count == len(column))


def _counts(column: Any) -> bool:
    """Whether the numbers are 0, 1, 2, … or 1, 2, 3, …"""
    if not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return False
    first = column[0].as_py()
    return first in (0, 1) and bool(column.to_pylist() == list(range(first, first + len(column))))


def _on_sheets(name: str, others: Sequence[str]) -> Iterator[Finding]:
    if others:
        listed = ", ".join(map(repr, others[:20]))
        yield Finding(
            code="sheets",
            severity="info",
            message=f"sheet {name!r} was read; the workbook also has {listed}: sheet= chooses",
        )


def _on_merged(lines: Sequence[int]) -> Iterator[Finding]:
    if lines:
        yield Finding(
            code="merged_cells",
            severity="info",
            rows=len(lines),
            message="the value of merged cells counts for all rows that they span: "
            f"{counted(len(lines), 'row')} filled, the first in line {lines[0]}",
        )


def _on_formulas(sheet: Sheet, names: Sequence[str], lines: Sequence[int]) -> list[Finding]:
    """A finding for each column with formulas of which the file has no values.

    Raises:
        Invalid: there are no other rows.
    """
    formulas = {column - sheet.left: rows for column, rows in sheet.empty.formulas.items()}
    if formulas and not lines:
        raise Invalid([("/columns", f"all rows have formulas without stored values: {CALCULATE}")])
    found = []
    for place, name in enumerate(names):
        at = [row + 1 for row in formulas.get(place, ()) if row + 1 >= lines[0]]
        if at:
            found.append(
                Finding(
                    code="formulas",
                    severity="error" if len(at) >= len(lines) else "warning",
                    column=name,
                    message=f"column {name!r} has formulas without stored values in "
                    f"{counted(len(at), 'row')}, the first in line {at[0]}: these cells are "
                    f"missing. {CALCULATE[0].upper()}{CALCULATE[1:]}",
                    rows=len(at),
                )
            )
    return found


def _on_durations(name: str) -> Finding:
    return Finding(
        code="unit",
        severity="info",
        column=name,
        message=f"column {name!r} holds durations: read as seconds",
    )
