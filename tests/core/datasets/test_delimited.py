"""Delimited text as people write it: what becomes of it, how it was read, and what is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.datasets.files.names import distinct
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import csv, text
from core.datasets.understanding.columns import understand
from core.exceptions import Invalid, NotParseable, TooLarge

LIMIT = 2**31

Read = Callable[..., Source]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def do(content: str | bytes, **options: Any) -> Source:
        path = tmp_path / "file"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return csv.read(path, LIMIT, ReadingOptions(**options))

    return do


def understood(source: Source) -> pa.Table:
    return pa.table({one.reading.name: one.column for one in understand(source, {})})


def codes(source: Source) -> list[str]:
    return [finding.code for finding in source.findings]


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


@pytest.mark.parametrize(
    ("content", "options", "columns"),
    [
        ("a\tb,c\n1\t2,3\n", {"delimiter": "tab"}, {"a": ["1"], "b,c": ["2,3"]}),
        ("a,b\n\"1,2\n3,4\n", {"quote": "none"}, {"a": ['"1', "3"], "b": ["2", "4"]}),
        ("a,b\n$1,2$,3\n", {"quote": "$"}, {"a": ["1,2"], "b": ["3"]}),
        ("a,b\n3,4\n", {"header": False}, {"column_1": ["a", "3"], "column_2": ["b", "4"]}),
        (",a\n0,5\n1,6\n", {"index": False}, {"row": ["0", "1"], "a": ["5", "6"]}),
        ("id,a\nx,5\ny,6\n", {"index": True}, {"a": ["5", "6"]}),
    ],
)  # fmt: skip
def test_what_the_caller_says_goes_before(
    read: Read, content: str | bytes, options: dict[str, Any], columns: dict[str, Any]
) -> None:
    source = read(content, **options)
    assert source.table.to_pydict() == columns


@pytest.mark.parametrize(
    ("encoding", "word", "found"),
    [
        ("utf-8", "größe", "utf-8"),
        ("utf-16-le", "größe", "utf-16-le"),
        ("utf-32", "größe", "utf-32-le"),
        ("cp1251", "Казань", "cp1251"),
        ("koi8-r", "Пётр", "koi8_r"),
        ("cp866", "город", "cp866"),
        ("cp1253", "Αθήνα", "cp1253"),
        ("cp1250", "Wrocław", "cp1250"),
        ("cp1255", "תל אביב", "cp1255"),
        ("cp1256", "القاهرة", "cp1256"),
        ("shift_jis", "東京", "shift_jis"),
        ("gb18030", "北京和上海的价格", "gb18030"),
        ("euc_kr", "김철수와 이영희", "euc_kr"),
    ],
)
def test_the_encoding_is_found_out(read: Read, encoding: str, word: str, found: str) -> None:
    source = read(f"name;{word}\n{word};1\n{word};2\n".encode(encoding))
    assert source.table.to_pydict() == {"name": [word, word], word: ["1", "2"]}
    assert source.reading.encoding == found
    guessed = not encoding.startswith("utf")
    assert codes(source) == (["encoding"] if guessed else [])
    if guessed:
        assert {example.value for example in source.findings[0].examples} == {word}
        assert source.findings[0].examples[-1].line == 3


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
    ("content", "columns", "skip", "said"),
    [
        ("Report;;;\n;;;\na;b;c;d\n1;2;3;4\n5;6;7;8\n",
         {"a": ["1", "5"], "b": ["2", "6"], "c": ["3", "7"], "d": ["4", "8"]}, 2,
         ["lines_left_out"]),
        ("# by me, today\na,b\n1,2\n3,4\n", AB, 1, ["lines_left_out"]),
        ("#a,b\n1,2\n3,4\n", AB, 0, []),
        ("#,Name\n1,x\n2,y\n", {"#": ["1", "2"], "Name": ["x", "y"]}, 0, []),
        ("a,b\n1,2\n# more, later, perhaps\n3,4\n", AB, 0, ["lines_left_out"]),
        ("a,b\n1,2\n3,4\n\nTotal: 10\n", AB, 0, ["lines_left_out"]),
        ("5.1,x\n4,x\n6,y\n", {"column_1": ["5.1", "4", "6"], "column_2": ["x", "x", "y"]}, 0,
         ["header_missing"]),
        ("city,color\nRome,red\nOslo,blue\nRome,red\n",
         {"city": ["Rome", "Oslo", "Rome"], "color": ["red", "blue", "red"]}, 0, []),
    ],
)  # fmt: skip
def test_the_table_is_found_among_other_lines(
    read: Read, content: str, columns: dict[str, Any], skip: int, said: list[str]
) -> None:
    source = read(content)
    assert source.table.to_pydict() == columns
    assert source.reading.skip == skip
    assert codes(source) == said
    assert source.reading.header == ("header_missing" not in said)


@pytest.mark.parametrize(
    ("content", "columns", "index", "said"),
    [
        ('"a" "b"\n"1" 1 2\n"2" 3 4\n', AB, True, ["index"]),  # R's write.table
        (",a,b\nx,1,2\ny,3,4\n", {"row": ["x", "y"], **AB}, False, ["index"]),
        ("a,b,\n1,2,\n3,4,\n", AB, False, ["names"]),
        ("a,b,\n1,2\n3,4\n", AB, False, []),
        ("a,,a\n1,2,3\n3,4,5\n",
         {"a": ["1", "3"], "column_2": ["2", "4"], "a_2": ["3", "5"]}, False, ["names", "names"]),
        (" a ,\"b\nc\"\n1,2\n", {"a": ["1"], "b c": ["2"]}, False, ["names"]),
    ],
)  # fmt: skip
def test_columns_get_usable_names_and_an_index_is_left_out(
    read: Read, content: str, columns: dict[str, Any], index: bool, said: list[str]
) -> None:
    source = read(content)
    assert source.table.to_pydict() == columns
    assert source.reading.index is index
    assert codes(source) == said


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


def test_a_record_of_several_megabytes_is_read(read: Read) -> None:
    """More than a block of Arrow's, which is then made larger."""
    long = "x" * 6_000_000
    source = read(f'a,b\n1,2\n"{long}",4\n5,6\n')
    assert source.table.column("a").to_pylist() == ["1", long, "5"]


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


@pytest.mark.parametrize("missing", ["", '""', "NA", "NaN", "NULL"])
def test_missing_values_of_every_type(read: Read, missing: str) -> None:
    table = understood(
        read(f"n,s,b,t\n{missing},{missing},{missing},{missing}\n1,x,true,2020-01-01\n")
    )
    assert [table.column(name).null_count for name in "nsbt"] == [1, 1, 1, 1]
    types = [str(type_).partition("[")[0] for type_ in table.schema.types]
    assert types == ["int64", "large_string", "bool", "timestamp"]


def test_the_type_is_that_of_the_whole_column(read: Read) -> None:
    """The first block of the file looks like integers; a value far below is not."""
    table = understood(read("a,b\n" + "1,2\n" * 300_000 + "1.5,2\n"))
    assert table.schema.types == [pa.float64(), pa.int64()]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ('a,b\n"x\ny",1\n1,2,3\n', "line 4 has 3 fields and the header 2"),
        ("a,b\n" + "1,2\n" * 300_000 + "1,2,3\n", "line 300002 has 3 fields"),
        ("a,b\n1," + "x" * (2**24 + 1) + "\n", "line 2 is not CSV"),
    ],
)
def test_what_is_not_csv_is_refused_by_line(read: Read, content: str | bytes, message: str) -> None:
    with pytest.raises(NotParseable, match=message) as refused:
        read(content)
    assert len(str(refused.value)) < 200


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
    assert text.read(path, LIMIT).table.to_pydict() == {"text": ["a b", "", " c\u2028d\x0be"]}
