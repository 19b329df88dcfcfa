"""CSV and plain text: what is read, and what is refused by line and byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.datasets.files.source import Source
from core.datasets.formats import csv, text
from core.datasets.understanding.columns import understand
from core.exceptions import Invalid, NotParseable, TooLarge

LIMIT = 2**31

Read = Callable[[str | bytes], pa.Table]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def do(content: str | bytes) -> pa.Table:
        path = tmp_path / "file.gz"  # the name must not matter
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return understood(csv.read(path, LIMIT))

    return do


def understood(source: Source) -> pa.Table:
    return pa.table({one.reading.name: one.column for one in understand(source, {})})


def values(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table.column(name).to_pylist() for name in table.column_names}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\n1,x\n2,y", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\r\n1,x\r\n2,y\r\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"\xef\xbb\xbfa,b\n1,x\n", {"a": [1], "b": ["x"]}),
        ('a,b\n1,"x\ny"\n2,"x\r\ny"\n', {"a": [1, 2], "b": ["x\ny", "x\r\ny"]}),
        ('a,b\n1,"x ""y"", z"\n', {"a": [1], "b": ['x "y", z']}),
        ('"a,b",c\n1,2\n', {"a,b": [1], "c": [2]}),
        ('a,b\n1,x"y\n', {"a": [1], "b": ['x"y']}),
        ("a,b\n\n1,2\n\n3,4\n\n", {"a": [1, 3], "b": [2, 4]}),
        ("a,b\ntrue,1.5\nFalse,-2e3\n", {"a": [True, False], "b": [1.5, -2000.0]}),
        ("größe,数\n1,ß\n", {"größe": [1], "数": ["ß"]}),
        ("a,b\n99999999999999999999,1\n1,2\n", {"a": [1e20, 1.0], "b": [1, 2]}),
    ],
)
def test_what_rfc_4180_means(
    read: Read, content: str | bytes, expected: dict[str, list[Any]]
) -> None:
    assert values(read(content)) == expected


@pytest.mark.parametrize("missing", ["", '""', "NA", "N/A", "NaN", "nan", "null", "NULL"])
def test_missing_values_of_every_type(read: Read, missing: str) -> None:
    table = read(f"n,s,b,t\n{missing},{missing},{missing},{missing}\n1,x,true,2020-01-01\n")
    assert [table.column(name).null_count for name in "nsbt"] == [1, 1, 1, 1]
    assert [str(type_) for type_ in table.schema.types] == [
        "int64",
        "large_string",
        "bool",
        "timestamp[us, tz=UTC]",
    ]


def test_a_column_without_values_is_a_number(read: Read) -> None:
    table = read("a,b\n,1\n,2\n")
    assert table.schema.field("a").type == pa.float64()
    assert table.column("a").null_count == 2


def test_the_type_is_that_of_the_whole_column(read: Read) -> None:
    """The first block of the file looks like integers; a value far below is not."""
    assert read("a,b\n" + "1,2\n" * 1_500_000 + "1.5,2\n").schema.types == [
        pa.float64(),
        pa.int64(),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n1,2\n3\n", "line 3 has 1 field and the header 2"),
        ('a,b\n"x\ny",1\n1,2,3\n', "line 4 has 3 fields and the header 2"),
        ("a,b\n" + "1,2\n" * 500_000 + "1,2,3\n", "line 500002 has 3 fields"),
        ('a,b\n1,"x\n2,3\n4,5\n', "is a quote not closed"),
        ("a,b\n1," + "x" * (2**24 + 1) + "\n", "line 2 is not CSV"),
    ],
)
def test_what_is_not_csv_is_refused_by_line(read: Read, content: str | bytes, message: str) -> None:
    with pytest.raises(NotParseable, match=message) as refused:
        read(content)
    assert len(str(refused.value)) < 200


def test_a_character_across_two_chunks_is_one_character(read: Read) -> None:
    """2²⁰ bytes are decoded at a time; the two bytes of é lie on both sides of that."""
    filler = "x" * (2**20 - len("a,b\n1,") - 1)
    assert read(f"a,b\n1,{filler}é\n").column("b").to_pylist() == [f"{filler}é"]


@pytest.mark.parametrize(
    ("content", "path", "message"),
    [
        ("a,b\n", "/columns", "has a header and no rows"),
        ("a,b", "/columns", "has a header and no rows"),
    ],
)
def test_what_no_model_can_use_is_refused_by_column(
    read: Read, content: str, path: str, message: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        read(content)
    assert [error[0] for error in refused.value.errors] == [path]


def test_errors_do_not_repeat_the_data(read: Read) -> None:
    for content in ("name,pay\nAda,1\nsecret\n", 'name,pay\n"secret,1\n'):
        with pytest.raises((NotParseable, Invalid)) as refused:
            read(content)
        assert "Ada" not in str(refused.value)


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TooLarge, match=r"takes 8 bytes .* CREDENCE_MAX_DATASET_BYTES is 7"):
        csv.read(path, 7)


def test_text_is_a_row_per_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("\ufeffa b\r\n\n c\u2028d\x0be\n".encode())
    assert values(text.read(path, LIMIT).table) == {"text": ["a b", "", " c\u2028d\x0be"]}


def test_text_without_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    with pytest.raises(NotParseable, match="the text is empty"):
        text.read(path, LIMIT)
    path.write_bytes("größe\n".encode() + b"\xff")
    with pytest.raises(NotParseable, match=r"byte 0xff at position 8 \(line 2\) is not UTF-8"):
        text.read(path, LIMIT)
