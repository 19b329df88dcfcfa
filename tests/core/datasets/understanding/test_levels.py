"""Columns of levels and of yes and no: blanks, case, words for missing values."""

import pytest

from tests.core.datasets.understanding.texts import fixed, read, said, values


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
