"""What a file is, whatever it is sent as."""

import pickle
from pathlib import Path

import pytest

from core.datasets.files.kinds import kind_of_text
from core.datasets.files.opening import opened
from core.exceptions import UnsupportedFormat

LIMIT = 2**24
ANY = "application/octet-stream"


def put(folder: Path, content: bytes) -> Path:
    path = folder / "upload"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("start", [b"ORC", b"PAR1", b"BZh"])
def test_a_header_that_begins_like_another_kind_is_text(tmp_path: Path, start: bytes) -> None:
    with opened(put(tmp_path, start + b",b\n1,2\n"), ANY, LIMIT) as file:
        assert file.format.name == "csv"


def test_text_stays_text_although_it_looks_like_a_table(tmp_path: Path) -> None:
    with opened(put(tmp_path, b"a,b\n1,2\n"), "text/plain; charset=utf-8", LIMIT) as file:
        assert file.format.name == "text"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "an image"),
        (pickle.dumps({"a": [1]}), "a pickle"),
        (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
        (b"RDX3\nX\n\0\0\0\3", "a file of R"),
        (b"SQLite format 3\0" + bytes(84), "an SQLite"),
        (b"\n<!DOCTYPE html>\n<html><body><table>", "an HTML page"),
        (b'<?xml version="1.0"?><rows><row a="1"/></rows>', "an XML document"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_never_read_says_how_to_go_on(tmp_path: Path, content: bytes, what: str) -> None:
    path = put(tmp_path, content)
    with (
        pytest.raises(UnsupportedFormat, match=f"the file is {what}"),
        opened(path, "text/csv", LIMIT),
    ):
        pass


@pytest.mark.parametrize("content", [b"set x,begin\n1,2\n", b"a,b\n" + b"1,a\n" * 50 + b"2,a\0\n"])
def test_words_of_sql_and_a_stray_nul_leave_a_table_a_table(tmp_path: Path, content: bytes) -> None:
    assert kind_of_text(_written(tmp_path, content)) == "csv"


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path
