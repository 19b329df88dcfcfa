"""Small files that ask for much, of the formats that are read in a child: refused, and cheaply."""

import io
import itertools
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core.datasets.files.opening import opened
from core.exceptions import NotParseable, TooLarge
from tests.core.datasets.reading import read
from tests.corpus.workbooks import ods, xlsx

pytestmark = pytest.mark.stack  # a child reads each
LIMIT = 2**26
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
HEAD = f'<?xml version="1.0"?><worksheet xmlns="{MAIN}">'
ROW = '<row r="{0}"><c r="A{0}"><v>1</v></c><c r="B{0}"><v>2</v></c></row>'
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = "xl/sharedStrings.xml"


def changed(book: bytes, **parts: str) -> bytes:
    """A workbook with other parts: `sheet`, `strings` or `content`."""
    names = {"sheet": SHEET, "strings": STRINGS, "content": "content.xml"}
    new = {names[name]: text for name, text in parts.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(buffer, "w") as made:
        for member in old.infolist():
            kept = new.get(member.filename, old.read(member))
            made.writestr(member.filename, kept, zipfile.ZIP_DEFLATED if kept else 0)
    return buffer.getvalue()


def sheet(rows: str, more: str = "") -> str:
    return f"{HEAD}<sheetData>{rows}</sheetData>{more}</worksheet>"


BOOK = xlsx({"S": [["a", "b"], ["x", "y"]]})


def dense() -> bytes:
    corner = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    return changed(BOOK(), sheet=sheet(ROW.format(1) + corner))


def entities() -> bytes:
    names = "abcdefghij"
    links = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise(names))
    cell = '<row r="1"><c r="A1" t="inlineStr"><is><t>&j;</t></is></c></row>'
    text = sheet(cell + ROW.format(2))
    declared = f'<!DOCTYPE l [<!ENTITY a "lol">{links}]><worksheet'
    return changed(BOOK(), sheet=text.replace("<worksheet", declared, 1))


def repeated_rows() -> bytes:
    content = ods({"S": [["a", "b"], ["x" * 1000, "y"]]})()
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        text = file.read("content.xml").decode()
    start = text.rindex("<table:table-row")
    many = '<table:table-row table:number-rows-repeated="2000000000"'
    text = text[:start] + many + text[start + len("<table:table-row") :]
    return changed(content, content=text)


def sparse_json() -> bytes:
    return b"[" + b",".join(b'{"k%d":1}' % i for i in range(300_000)) + b"]"


def wide_json() -> bytes:
    return b"[" + b",".join(b"[%s]" % (b"1," * 9 + b"1") for _ in range(10)) + b"]" * 2**20


BOMBS: dict[str, Callable[[], bytes]] = {
    one.__name__: one for one in (dense, entities, repeated_rows, sparse_json, wide_json)
}


@pytest.mark.parametrize("kind", BOMBS)
def test_small_files_harm_nobody(tmp_path: Path, kind: str) -> None:
    """The child may take 576 MiB, and is ended where it asks for more."""
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[kind]())
    assert path.stat().st_size < 2**23
    with (
        pytest.raises((TooLarge, NotParseable)),
        opened(path, "application/octet-stream", LIMIT, tmp_path) as file,
    ):
        read(file, LIMIT)
