"""Writes workbooks whose bytes are the same each time."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import openpyxl
import xlwt
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

Rows = Sequence[Sequence[Any]]

MOMENT = (2021, 3, 1, 12, 0, 0)


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
        return _dated(file.getvalue())

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
        return _dated(file.getvalue())

    return write


def xls(sheets: Mapping[str, Rows]) -> Callable[[], bytes]:
    """A workbook of Excel 97."""

    def write() -> bytes:
        book = xlwt.Workbook()
        day = xlwt.easyxf(num_format_str="YYYY-MM-DD")
        for name, rows in sheets.items():
            sheet = book.add_sheet(name)
            for i, row in enumerate(rows):
                for k, value in enumerate(row):
                    if value is not None:
                        style = [day] if isinstance(value, date) else []
                        sheet.write(i, k, value, *style)
        file = io.BytesIO()
        book.save(file)
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


def _dated(archive: bytes) -> bytes:
    """The archive with one time in it, that of `MOMENT`."""
    file = io.BytesIO()
    now = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?(?=</(dcterms|meta|dc):)")
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename in ("docProps/core.xml", "meta.xml"):
                content = now.sub(b"2021-03-01T12:00:00Z", content)
            info = zipfile.ZipInfo(member.filename, MOMENT)
            info.compress_type = member.compress_type
            new.writestr(info, content)
    return file.getvalue()
