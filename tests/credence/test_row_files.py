"""Rows of CSV and JSON lines that the client reads itself, and the heads of files."""

import gzip
import io
from pathlib import Path

import pytest

from credence.client.files.line_pieces import Pieces, header_of, rows_of
from credence.client.files.media_types import headers_for
from credence.commands.files.headers import column_names
from credence.commands.files.rows import BadRows, Rows, open_rows, read_lines
from credence.types import Feature, Json

FEATURES: list[Feature] = [
    {"name": "size", "type": "number"},
    {"name": "new", "type": "boolean"},
    {"name": "kind", "type": "category"},
]


def records(found: Rows) -> list[Json]:
    columns = found.all()
    values = zip(*(column.values for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def test_cells_take_the_type_of_their_feature() -> None:
    lines = ["id,kind,size,new,y", "1,7,1e3,True,3", "2,b,-2,0,4", "3,,,,5"]
    found = read_lines(lines, "csv", FEATURES)
    assert found.ignored == ("id", "y")
    assert records(found) == [
        {"size": 1000.0, "new": True, "kind": "7"},
        {"size": -2.0, "new": False, "kind": "b"},
        {"size": None, "new": None, "kind": None},
    ]


def test_codes_of_categories_are_text_in_json_too() -> None:
    source = io.BytesIO(b'{"size": 1, "new": true, "kind": 7, "more": 0}')
    with open_rows(source, "jsonl", FEATURES) as found:
        assert records(found) == [{"size": 1, "new": True, "kind": "7"}]
        assert found.ignored == ("more",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("size,new\n1,1\n", "'kind'"),
        ("size,new,kind\n1,1\n", "row 1"),
        ("size,new,kind\n1,1,a\nbig,1,a\n", "row 2, column 'size'"),
        ("size,new,kind\nnan,1,a\n", "row 1, column 'size'"),
        ("size,new,kind\n1,perhaps,a\n", "'perhaps'"),
    ],
)
def test_a_bad_row_is_named(text: str, message: str) -> None:
    with pytest.raises(BadRows, match=message):
        records(read_lines(text.splitlines(), "csv", FEATURES))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "row 1"),
        ("{", "row 1"),
        ('{"size": NaN, "new": true, "kind": "a"}', "row 1, column 'size'"),
        ('{"size": 1, "new": true, "kind": "a"}\n{"size": 1, "new": true}', "row 2.*'kind'"),
        ("", "an object per line"),
    ],
)
def test_a_bad_line_is_named(line: str, message: str) -> None:
    source = io.BytesIO(line.encode())
    with (
        pytest.raises(BadRows, match=message),
        open_rows(source, "jsonl", FEATURES) as found,
    ):
        found.all()


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.csv", "price;size\n1,5;2\n3,5;4\n", ["price", "size"]),
        ("a.csv", "Report of 2021\n\nprice,size\n1,2\n", ["price", "size"]),
        ("a.csv", "# made here\nprice,size\n1,2\n", ["price", "size"]),
        ("a.csv", "sep=|\nprice|size\n1|2\n", ["price", "size"]),
        ("a.csv", '"the, price" , size\n1,2\n', ["the, price", "size"]),
        ("a.csv", "price size,y\n1,2\n".encode("utf-16"), ["price size", "y"]),
        ("a.csv.gz", gzip.compress(b"price,size\n1,2\n", mtime=0), ["price", "size"]),
        ("a.jsonl", '{"price": 1, "at": {"x": 2}}\n{"size": 3}\n', ["price", "at", "at.x", "size"]),
        ("a.csv", "1,2\n3,4\n", None),  # no header
        ("a.csv", "prix\n1\n", None),  # one column, or another delimiter
        ("a.csv", "größe,y\n1,2\n".encode("latin-1"), None),  # the service finds the encoding
        ("a.txt", "price,size\n1,2\n", None),  # one column of text
    ],
)
def test_the_names_are_those_of_the_header_or_left_to_the_service(
    tmp_path: Path, name: str, content: str | bytes, names: list[str] | None
) -> None:
    assert column_names(written(tmp_path, name, content), {}) == names


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
