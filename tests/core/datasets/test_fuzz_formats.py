"""Any bytes are a data set or a refusal, nothing else; small files that ask for much are cheap."""

import io
import itertools
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from core.datasets.columns.conversion import to_json
from core.datasets.files.opening import opened
from core.datasets.files.options import ReadingOptions
from core.datasets.formats import MEDIA_TYPES, format_named
from core.datasets.formats.parquet_pages import num_columns
from core.datasets.profiles import profile
from core.datasets.understanding.columns import understand
from core.exceptions import CredenceError, Invalid, NotParseable, TooLarge
from tests.core.datasets import reading
from tests.core.datasets.reading import DEFAULT
from tests.corpus.workbooks import ods, xlsx
from tests.fuzz.mutations import files, headers_of_arrays, mutated

LIMIT = 2**26
QUICK = settings(
    max_examples=25, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read(media_type: str, content: bytes, folder: Path) -> pa.Table:
    """As an upload is read, profiles and first rows included."""
    path = folder / "file"
    path.write_bytes(content)
    with opened(path, media_type, LIMIT, folder) as file:
        quick = file.format.checked  # without the second that a child takes
        source = file.read(LIMIT, DEFAULT, quick) if quick else reading.read(file, LIMIT)
    table = pa.table({one.reading.name: one.column for one in understand(source, {})})
    for name in table.column_names:
        profile(name, table.column(name))
    to_json(table.slice(0, 20))
    return table


@pytest.mark.parametrize("media_type", list(files()))
def test_damaged_files_are_read_or_refused(media_type: str, tmp_path: Path) -> None:
    for seed in range(150):
        content = mutated(files()[media_type], random.Random(seed))
        with suppress(CredenceError):
            read(media_type, content, tmp_path)


@pytest.mark.stack  # some readers run in a child
@QUICK
@given(content=st.binary(max_size=200), media_type=st.sampled_from(list(MEDIA_TYPES)))
def test_any_bytes_are_read_or_refused(content: bytes, media_type: str, tmp_path: Path) -> None:
    with suppress(CredenceError):
        read(media_type, content, tmp_path)


@pytest.mark.parametrize("content", headers_of_arrays())
def test_headers_of_arrays_are_data(content: bytes, tmp_path: Path) -> None:
    """NumPy gives them to Python's parser, which fails in its own ways."""
    with pytest.raises(CredenceError):
        read("application/x-npz", content, tmp_path)


def test_columns_are_counted_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By our own reading of the footer, equal to pyarrow's, tensors and several groups included."""
    path = tmp_path / "wide.parquet"
    columns: dict[str, Any] = {f"c{i}": [float(i)] * 4 for i in range(7)}
    columns["t"] = pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))
    parquet.write_table(pa.table(columns), path, row_group_size=2)
    assert parquet.read_metadata(path).num_columns == 8
    assert num_columns(memoryview(path.read_bytes())) == 8
    monkeypatch.setattr("core.datasets.formats.parquet.MAX_COLUMNS", 7)
    monkeypatch.setattr("core.datasets.formats.parquet.parquet.ParquetFile", None)  # not called
    with pytest.raises(Invalid, match="there are 8 columns: give at most 7"):
        format_named("parquet").read(path, 2**20, ReadingOptions())


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


@pytest.mark.stack  # a child reads each
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
        reading.read(file, LIMIT)
