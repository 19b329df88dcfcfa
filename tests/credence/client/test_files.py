"""Files on their way to the service: as what they are sent, and in pieces of whole rows."""

import io
from pathlib import Path

import pytest

from credence.client.files.line_pieces import Pieces, header_of, is_splittable, rows_of
from credence.client.files.media_types import headers_for

CSV = b'# made by hand\n\nid,text\n1,"two\nlines"\n2,"a ""b"" c"\n3,plain\n'


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("a.CSV", {"Content-Type": "text/csv"}),
        ("a.b.csv.gz", {"Content-Type": "text/csv", "Content-Encoding": "gzip"}),
        ("a.ndjson", {"Content-Type": "application/x-ndjson"}),
        ("a.zip", {"Content-Type": "application/octet-stream"}),
        ("a", {"Content-Type": "application/octet-stream"}),
    ],
)
def test_a_file_is_sent_as_what_its_suffix_says(name: str, headers: dict[str, str]) -> None:
    assert headers_for(Path(name)) == headers


def test_a_row_keeps_the_line_breaks_in_its_quotes() -> None:
    rows = list(rows_of(io.BytesIO(CSV)))
    assert rows[3] == b'1,"two\nlines"\n'
    assert b"".join(rows) == CSV
    assert len(rows) == 6


def test_pieces_have_all_rows_once_and_in_order() -> None:
    lines = [b"%d\n" % i for i in range(10)]
    pieces = Pieces(lines, max_rows=8, max_bytes=1000)
    first = pieces.next()
    assert len(first) == 8
    pieces.put_back(first)  # too large for the service
    rest = list(iter(pieces.next, []))
    assert [len(piece) for piece in rest] == [4, 4, 2]
    assert [line for piece in rest for line in piece] == lines
    by_bytes = Pieces([b"x" * 10] * 5, max_rows=100, max_bytes=25)
    assert [len(piece) for piece in iter(by_bytes.next, [])] == [3, 2]


@pytest.mark.parametrize(
    ("reading", "header"),
    [
        ({"header": True, "comment": "#", "skip": 0}, b"id,text\n"),
        ({"header": True, "comment": None, "skip": 2}, b"id,text\n"),
        ({"header": False}, b""),
    ],
)
def test_the_header_is_the_first_row_that_is_no_comment(
    reading: dict[str, object], header: bytes
) -> None:
    assert header_of(list(rows_of(io.BytesIO(CSV))), reading) == header


def test_files_of_wide_characters_are_not_cut() -> None:
    assert is_splittable("a;ä\n".encode("cp1252"))
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        assert not is_splittable("a;b\n".encode(encoding))
    assert not is_splittable(b"\x1f\x8b\x08")
