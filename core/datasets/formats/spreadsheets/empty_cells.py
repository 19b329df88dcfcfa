"""Cells of an .xlsx file that calamine gives as empty: errors (#N/A), formulas without values."""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from core.datasets.files.archives import BROKEN, opened_zip

MAX_PART = 2**22  # bytes of the workbook's own parts
PIECE = 2**20
MAX_CELL = 2**12  # bytes of a cell with an error: its formula, too
SHEET = re.compile(rb'<(?:\w+:)?sheet [^>]*?name="([^"]*)"[^>]*?\w+:id="([^"]*)"')
RELATION = re.compile(rb"<(?:\w+:)?Relationship [^>]*>")
CELL = re.compile(
    rb'<(?:\w+:)?c ([^>]*\bt="e"[^>]*)>(?:(?!</(?:\w+:)?c>).){0,4000}?<(?:\w+:)?v>([^<]{1,30})<',
    re.DOTALL,
)
FORMULA = re.compile(  # an empty text has the type str, and is a value
    rb'<(?:\w+:)?c ((?:(?!\bt="str")[^>])*)>\s*<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>)'
    rb"\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
REFERENCE = re.compile(rb'\br="([A-Z]{1,3})(\d{1,7})"')


@dataclass(frozen=True)
class EmptyCells:
    """What is in cells that seem empty. Rows and columns count from 0.

    Args:
        errors: their texts by row and column.
        formulas: the rows of those whose value the file lacks, by column.
    """

    errors: dict[int, dict[int, str]] = field(default_factory=dict)
    formulas: dict[int, list[int]] = field(default_factory=dict)


def find_empty_cells(path: Path, sheet: int) -> EmptyCells:
    """Errors, and formulas without values; none for other kinds of workbooks.

    Args:
        sheet: its place in the workbook, counting from 0.
    """
    try:
        with opened_zip(path) as archive:
            part = _part(archive, sheet)
            if part is None:
                return EmptyCells()
            found = EmptyCells()
            with archive.open(part) as file:
                for row, column, text in _cells(file):
                    if text is None:
                        found.formulas.setdefault(column, []).append(row)
                    else:
                        found.errors.setdefault(row, {})[column] = text
            return found
    except (*BROKEN, KeyError):
        return EmptyCells()


def _part(archive: zipfile.ZipFile, sheet: int) -> str | None:
    """The name of the sheet's part in the archive."""
    if "xl/workbook.xml" not in archive.namelist():
        return None
    ids = [found[2] for found in SHEET.finditer(_read(archive, "xl/workbook.xml"))]
    if sheet >= len(ids):
        return None
    for relation in RELATION.findall(_read(archive, "xl/_rels/workbook.xml.rels")):
        target = re.search(rb'\bTarget="([^"]*)"', relation)
        if target and re.search(rb'\bId="' + re.escape(ids[sheet]) + b'"', relation):
            name = target[1].decode()
            return name.lstrip("/") if name.startswith("/") else str(PurePosixPath("xl") / name)
    return None


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(MAX_PART)


def _cells(file: IO[bytes]) -> Iterator[tuple[int, int, str | None]]:
    """Each error, and None for each formula without a value.

    Each once: pieces overlap, and what ends in the overlap is found in the next.
    """
    kept = b""
    while piece := file.read(PIECE):
        data = kept + piece
        end = 0
        formulas = FORMULA.finditer(data) if b"<f" in data or b":f" in data else ()
        for found in (*CELL.finditer(data), *formulas):
            end = max(end, found.end())
            if place := REFERENCE.search(found[1]):
                text = found[2].decode("utf-8", "replace") if found.re is CELL else None
                yield int(place[2]) - 1, _column(place[1]), text
        kept = data[max(end, len(data) - MAX_CELL) :]


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number - 1
