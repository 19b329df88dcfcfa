"""What the client sees in the head of a file, and where it leaves the answer to the service."""

import gzip
from pathlib import Path

import pytest

from credence.commands.files.headers import column_names, names_without
from credence.types import ReadingOptions


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.csv", "price,size\n1,2\n3,4\n", ["price", "size"]),
        ("a.csv", "price;size\n1,5;2\n3,5;4\n", ["price", "size"]),
        ("a.tsv", "price\tsize\n1\t2\n", ["price", "size"]),
        ("a.csv", "Report of 2021\n\nprice,size\n1,2\n", ["price", "size"]),
        ("a.csv", "# made here\nprice,size\n1,2\n", ["price", "size"]),
        ("a.csv", "sep=|\nprice|size\n1|2\n", ["price", "size"]),
        ("a.csv", '"the, price" , size\n1,2\n', ["the, price", "size"]),
        ("a.csv", "price size,y\n1,2\n".encode("utf-16"), ["price size", "y"]),
        ("a.csv.gz", gzip.compress(b"price,size\n1,2\n", mtime=0), ["price", "size"]),
        ("a.csv", "price,size\n" + "1,2\n" * 50_000, ["price", "size"]),
        ("a.jsonl", '{"price": 1, "at": {"x": 2}}\n{"size": 3}\n', ["price", "at", "at.x", "size"]),
        ("a.csv", "1,2\n3,4\n", None),  # no header
        ("a.csv", "prix\n1\n", None),  # one column, or another delimiter
        ("a.csv", "größe,y\n1,2\n".encode("latin-1"), None),  # the service finds the encoding
        ("a.csv", "", None),
        ("a.txt", "price,size\n1,2\n", None),  # one column of text
        ("a.parquet", b"PAR1", None),
    ],
)
def test_the_names_are_those_of_the_header_or_left_to_the_service(
    tmp_path: Path, name: str, content: str | bytes, names: list[str] | None
) -> None:
    assert column_names(written(tmp_path, name, content), {}) == names


def test_options_of_the_reading_count(tmp_path: Path) -> None:
    caret = written(tmp_path, "a.csv", "one,\nprice^si,ze\n1^2\n")
    options: ReadingOptions = {"delimiter": "^", "skip": 1}
    assert column_names(caret, options) == ["price", "si,ze"]
    assert column_names(caret, {"header": False}) is None
    latin = written(tmp_path, "b.csv", "größe,y\n1,2\n".encode("latin-1"))
    assert column_names(latin, {"encoding": "latin-1"}) == ["größe", "y"]


def test_only_a_target_that_surely_is_no_column_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", ",price,price\n0,1,2\n1,3,4\n")
    assert names_without("prize", path, {}) == ["", "price", "price"]
    for possible in ("price", "price_2", "column_1"):  # a repeated and a missing name are replaced
        assert names_without(possible, path, {}) is None


def test_a_target_in_ascii_is_looked_for_in_any_encoding(tmp_path: Path) -> None:
    latin = written(tmp_path, "a.csv", "größe;price\n1;2\n3;4\n".encode("latin-1"))
    assert names_without("prize", latin, {}) == ["größe", "price"]
    assert names_without("price", latin, {}) is None
    assert names_without("grösse", latin, {}) is None, "other encodings have other letters"
    wide = written(tmp_path, "b.csv", "größe;price\n1;2\n3;4\n".encode("utf-16-le"))
    assert names_without("prize", wide, {}) is None
