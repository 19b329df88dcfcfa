"""Columns of levels and of yes and no: blanks, case, words for missing values."""

import pytest

from tests.core.datasets.understanding.texts import fixed, read, said, values


def test_blanks_and_case_are_no_difference() -> None:
    texts = ["red", "Red ", "RED", "red", "blue"]
    found = read(texts)
    assert values(found) == ["red", "red", "red", "red", "blue"]
    blanks, case = said(found)
    assert (blanks.code, blanks.severity, blanks.rows) == ("blanks", "info", 1)
    assert [(one.line, one.value) for one in blanks.examples] == [(3, "Red ")]
    assert (case.code, case.severity, case.rows) == ("case", "warning", 2)
    for finding in (blanks, case):
        assert values(fixed(texts, finding)) == texts


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["New  York", "New York"], ["New York", "New York"]),
        (["Mu\u0308nchen", "München", "München"], ["München"] * 3),
        (["a\u00a0", "a"], ["a", "a"]),
        (["  ", "a"], [None, "a"]),
    ],
)
def test_one_spelling_for_a_level(texts: list[str], expected: list[str | None]) -> None:
    assert values(read(texts)) == expected


def test_identifiers_keep_their_case() -> None:
    """More than half of 300 rows differ: `aB1` and `Ab1` are two."""
    texts = [f"{letter}{n}" for n in range(150) for letter in ("aB", "Ab")]
    assert values(read(texts)) == texts


def test_clear_words_are_missing_and_others_are_levels() -> None:
    texts = ["a", "-", "NA", "none", "unknown", "?"]
    found = read(texts)
    assert values(found) == ["a", None, None, "none", "unknown", None]
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("missing_words", "info", 3)
    assert values(fixed(texts, finding)) == texts


def test_strings_of_typed_files_are_cleaned_and_flagged() -> None:
    found = read(["a", "A", "a ", "", "NA"], typed=True)
    assert values(found) == ["a", "a", "a", "", "NA"]
    assert [one.code for one in said(found)] == ["blanks", "case"]
    numbers = read(["1,5", "2,5"], typed=True)
    assert (numbers.readings[0].type, values(numbers)) == ("category", ["1,5", "2,5"])
    (finding,) = said(numbers)
    assert (finding.code, finding.severity) == ("mostly_numeric", "warning")
    assert values(fixed(["1,5", "2,5"], finding)) == [1.5, 2.5]
    assert read(["yes", "no"], typed=True).readings[0].type == "category"
