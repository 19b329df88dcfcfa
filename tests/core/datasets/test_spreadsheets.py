"""Workbooks: cells come back as they are meant; the layout is found out."""

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats.spreadsheets import workbook
from core.exceptions import Invalid, NotParseable

LIMIT = 2**28
Read = Callable[..., Source]
TABLE = [["a", "b"], [1, "x"], [2, "y"], [3, "z"]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def do(content: bytes, **options: Any) -> Source:
        path = tmp_path / "book"
        path.write_bytes(content)
        return workbook.read(path, LIMIT, ReadingOptions(**options))

    return do


def book(rows: Sequence[Sequence[Any]], merge: Sequence[str] = ()) -> bytes:
    """One sheet; None is an empty cell."""
    made = openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    for row in rows:
        sheet.append(list(row))
    for cells in merge:
        sheet.merge_cells(cells)
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def columns(source: Source) -> Mapping[str, list[Any]]:
    return source.table.to_pydict()


def codes(source: Source) -> list[str]:
    return [finding.code for finding in source.findings]


def test_merged_cells_are_names_in_two_rows_or_count_for_all_their_rows(read: Read) -> None:
    rows: list[list[Any]] = [["", "2020", "", "2021", ""], ["city", "low", "high", "low", "high"]]
    rows += [[f"c{i}", i, i + 1, i + 2, i + 3] for i in range(5)]
    source = read(book(rows, merge=["B1:C1", "D1:E1"]))
    assert source.table.column_names == ["city", "2020 low", "2020 high", "2021 low", "2021 high"]
    rows = [["group", "x"], ["a", 1], [None, 2], [None, 3], ["b", 4]]
    source = read(book(rows, merge=["A2:A4"]))
    assert columns(source) == {"group": ["a", "a", "a", "b"], "x": [1, 2, 3, 4]}
    assert codes(source) == ["merged_cells"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "not a workbook .* or has a password"),
        (book(TABLE)[:-500], "not a workbook"),
    ],
    ids=["ole", "cut"],
)
def test_what_is_no_workbook_is_refused(read: Read, content: bytes, message: str) -> None:
    with pytest.raises(NotParseable, match=message):
        read(content)


FORMULAS = [["n", "price", "total"], *([n, n / 2, f"=A{n}*B{n}"] for n in range(2, 12))]


def test_formulas_without_values_are_said_with_what_to_do(read: Read) -> None:
    found = read(book(FORMULAS))
    (finding,) = [one for one in found.findings if one.code == "formulas"]
    assert (finding.column, finding.severity, finding.rows) == ("total", "error", 10)
    assert "line 2" in finding.message
    assert "spreadsheet program" in finding.message
    assert columns(found)["total"] == [None] * 10


def test_a_table_of_formulas_alone_is_refused_with_what_to_do(read: Read) -> None:
    with pytest.raises(Invalid, match="spreadsheet program"):
        read(book([["a", "b"], ["=1", "=2"], ["=3", "=4"]]))


def test_formulas_with_values_are_values(read: Read) -> None:
    content = _stored(book(FORMULAS))
    found = read(content)
    assert "formulas" not in codes(found)
    assert columns(found)["total"] == [7.5] * 10


def _stored(content: bytes) -> bytes:
    """The workbook with a value for each formula, as a spreadsheet program stores it."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(
                name,
                old.read(name).replace(b"<v />", b"<v>7.5</v>").replace(b"<v/>", b"<v>7.5</v>"),
            )
    return made.getvalue()
