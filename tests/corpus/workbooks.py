"""Writes small workbooks."""

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import openpyxl
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

Rows = Sequence[Sequence[Any]]


def xlsx(sheets: Mapping[str, Rows]) -> Callable[[], bytes]:
    """A workbook of Excel. None is an empty cell; `=1/0` would be a formula."""

    def write() -> bytes:
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(list(row))
        file = io.BytesIO()
        book.save(file)
        return file.getvalue()

    return write


def ods(sheets: Mapping[str, Rows]) -> Callable[[], bytes]:
    """A workbook of OpenDocument."""

    def write() -> bytes:
        book = OpenDocumentSpreadsheet()
        for name, rows in sheets.items():
            table = Table(name=name)
            for row in rows:
                line = TableRow()
                for value in row:
                    line.addElement(_cell(value))
                table.addElement(line)
            book.spreadsheet.addElement(table)
        file = io.BytesIO()
        book.write(file)
        return file.getvalue()

    return write


def _cell(value: Any) -> TableCell:
    if value is None:
        return TableCell()
    if isinstance(value, bool):
        return _shown(TableCell(valuetype="boolean", booleanvalue=str(value).lower()), value)
    if isinstance(value, int | float):
        return _shown(TableCell(valuetype="float", value=str(value)), value)
    if isinstance(value, date):
        return _shown(TableCell(valuetype="date", datevalue=value.isoformat()), value)
    return _shown(TableCell(valuetype="string"), value)


def _shown(cell: TableCell, value: Any) -> TableCell:
    cell.addElement(P(text=str(value)))
    return cell
