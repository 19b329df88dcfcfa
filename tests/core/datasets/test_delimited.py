"""Delimited text as people write it: what becomes of it, how it was read, and what is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.datasets.files.names import distinct
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import csv, text
from core.exceptions import Invalid, NotParseable

LIMIT = 2**31

Read = Callable[..., Source]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def do(content: str | bytes, **options: Any) -> Source:
        path = tmp_path / "file"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return csv.read(path, LIMIT, ReadingOptions(**options))

    return do


AB = {"a": ["1", "3"], "b": ["2", "4"]}


@pytest.mark.parametrize(
    ("content", "columns", "delimiter", "quote"),
    [
        ("a b\n1 2\n3 4\n", AB, " ", '"'),
        ("a   b\n 1  2\n3\t 4  \n", AB, " ", '"'),
        ("a\x01b\n1\x012\n3\x014\n", AB, "\x01", '"'),
        ("x, m;y, m\n1,5;2,5\n", {"x, m": ["1,5"], "y, m": ["2,5"]}, ";", '"'),
        ("name\nDoe, John\nRoe, Jane\n", {"name": ["Doe, John", "Roe, Jane"]}, None, '"'),
        ('a,b\n"1,5","x ""y"""\n', {"a": ["1,5"], "b": ['x "y"']}, ",", '"'),
        ('a,b\n"x\\"y, z",2\n"3",4\n', {"a": ['x"y, z', "3"], "b": ["2", "4"]}, ",", '"'),
        ('a, b\n1, "x, y"\n2, "z"\n', {"a": ["1", "2"], "b": ["x, y", "z"]}, ",", '"'),
        ("a\tb\n\\N\t2\nx\\ty\t\\N\n", {"a": [None, "x\ty"], "b": ["2", None]}, "\t", None),
        ('size\tb\n5" pipe\t2\n"loose\t4\n', {"size": ['5" pipe', '"loose'], "b": ["2", "4"]},
         "\t", None),
        (" id | name \n----+------\n  1 | x\n  2 | y\n(2 rows)\n",
         {"id": ["  1 ", "  2 "], "name": [" x", " y"]}, "|", '"'),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", {"a": [" 1 "], "b": [" 2 "]}, "|", '"'),
    ],
)  # fmt: skip
def test_the_dialect_is_found_out(
    read: Read, content: str, columns: dict[str, Any], delimiter: str | None, quote: str | None
) -> None:
    source = read(content)
    assert source.table.to_pydict() == columns
    assert (source.reading.delimiter, source.reading.quote) == (delimiter, quote)
    assert not source.typed


def test_an_encoding_is_found_far_down(read: Read) -> None:
    source = read(b"a,b\n" + b"1,x\n" * 300_000 + b"2,caf\xe9\n")
    assert source.table.column("b")[300_000].as_py() == "café"
    assert source.findings[0].examples[0].line == 300_002


def test_damaged_utf_8_is_refused_by_line(read: Read) -> None:
    wrong = "a,b\n1,größe\n2,weiß\n".encode() + b"3,\xff\n"
    with pytest.raises(NotParseable, match=r"byte 0xff at position 24 \(line 4\).*encoding="):
        read(wrong)
    with pytest.raises(NotParseable, match=r"byte 0xe4 at position 6 \(line 2\) is not UTF-8"):
        read(b"a,b\n1,\xe4\n", encoding="utf-8")
    for name in ("klingon", "base64", "\ud800"):
        with pytest.raises(Invalid) as refused:
            read("a,b\n1,2\n", encoding=name)
        assert refused.value.errors[0][0] == "encoding"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a,b\r\n1,2\r\n\r\n3,4\r\n\r\n5,6\r\n", [2, 4, 6]),
        ('a,b\n"x\ny\nz",2\n3,4\n"u\n""v""",5\n', [2, 5, 6]),
        ('a,b\n"x\n\n# no",2\n# a comment of, some, length\n3,4\n5,6\n', [2, 6, 7]),
        ("a,b\r1,2\r3,4\r5,6\r", [2, 3, 4]),
    ],
)
def test_rows_know_their_lines(read: Read, content: str, lines: list[int]) -> None:
    source = read(content)
    assert source.table.num_rows == 3
    assert list(source.lines([0, 1, 2])) == lines
    assert list(source.lines([2])) == lines[2:]


def test_a_row_of_totals_is_left_out_and_said(read: Read) -> None:
    source = read("item,price\na,1\nb,2\nTotal:,3\n")
    assert source.table.to_pydict() == {"item": ["a", "b"], "price": ["1", "2"]}
    [found] = source.findings
    assert (found.code, found.severity) == ("lines_left_out", "warning")
    assert [(one.line, one.value) for one in found.examples] == [(4, "Total:")]
    for rows in ("total,1\na,2\ntotal,3\n", "totally,1\na,2\nb,3\n", "b,1\ntotal,2\n"):
        assert read(f"item,price\n{rows}").table.num_rows == rows.count("\n")


def test_rows_that_repeat_the_header_are_left_out_by_line(read: Read) -> None:
    source = read("a,b\n1,x\n2,y\n\ufeffa,b\n3,x\na,z\na,b\n", header=True)
    assert source.table.to_pydict() == {"a": ["1", "2", "3", "a"], "b": ["x", "y", "x", "z"]}
    (finding,) = source.findings
    assert (finding.code, finding.rows) == ("lines_left_out", 2)
    assert [example.line for example in finding.examples] == [4, 7]
    assert list(source.lines([1, 2, 3])) == [3, 5, 6]


def test_many_equal_names_take_a_step_each() -> None:
    """As a header of commas or of one letter has them; quadratic steps took hours."""
    names = distinct(["a"] * 90_000 + ["a_7", ""])
    assert names[:2] == ["a", "a_2"]
    assert (names[6], names[89_999]) == ("a_8", "a_90001")
    assert len(set(names)) == 90_002


def test_too_many_columns_are_refused_before_they_are_named(read: Read) -> None:
    with pytest.raises(Invalid, match="there are 150000 columns in line 1: give at most 20000"):
        read("a" + ",a" * 149_999 + "\n" + "1" + ",1" * 149_999 + "\n")
    quoted = "," * 20_000  # no columns
    assert read(f'a,b\n1,"he said ""{quoted}"""\n').table.num_columns == 2


def test_errors_do_not_repeat_the_data(read: Read) -> None:
    for content in ("name,pay\nAda,1\nsecret\n", 'name,pay\n"secret,1\n'):
        with pytest.raises((NotParseable, Invalid)) as refused:
            read(content)
        assert "Ada" not in str(refused.value)


def test_text_is_a_row_per_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("\ufeffa b\r\n\n c\u2028d\x0be\n".encode())
    assert text.read(path, LIMIT).table.to_pydict() == {"text": ["a b", "", " c\u2028d\x0be"]}
