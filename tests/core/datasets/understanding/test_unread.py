"""Columns that stay categories though they mean quantities: their owner hears of it."""

import pytest

from tests.core.datasets.understanding.texts import fixed, read, said, values

WORDS = ["Prefer not to say"] * 5
NUMBERS = ["45000", "52000", "61000", "70000", "45500", "38000"]


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (["00:03:21", "01:10:00", "00:59:59", "02:00:01", "00:00:09"], "times of day or durations"),
        (["2h 5m", "1h 30m", "3h 59m", "12h 0m", "4h 4m"], "times of day or durations"),
        (["52.5, 13.4", "48.1, 11.6", "51.1, 13.7", "50.9, 7.0", "53.6, 10.0"], "pairs of numbers"),
        (["1.2***", "-0.3*", "2.5**", "0.7", "4.1†"], "numbers with signs beside them"),
    ],
)
def test_quantities_of_other_kinds_are_said(texts: list[str], what: str) -> None:
    (finding,) = said(read(texts))
    assert (finding.code, finding.severity, finding.rows) == ("unread", "warning", len(texts))
    assert what in finding.message
    assert finding.examples[0].line == 2
    assert finding.fix == {"columns": [{"name": "x", "use": False}]}
    assert said(fixed(texts, finding)) == []


@pytest.mark.parametrize(
    "texts",
    [
        ["1.2.3", "1.10.0", "2.0.1", "0.9.12", "3.4.5"],
        ["1-10", "11-50", "51-200", "201-500", "501-1000"],
        ["1. Primary", "2. Secondary", "3. Tertiary", "4. Other", "1. Primary"],
    ],
)
def test_names_with_digits_are_no_quantities(texts: list[str]) -> None:
    assert said(read(texts)) == []


def test_numbers_among_many_words_are_said_with_lines_and_mended() -> None:
    texts = [*NUMBERS, *WORDS]
    found = read(texts)
    assert found.readings[0].type == "category"
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("mostly_numeric", "warning", 5)
    assert finding.examples[0].line == 8
    assert values(fixed(texts, finding)) == [*map(float, NUMBERS), *[None] * 5]


def test_dates_in_two_orders_are_said_and_mended() -> None:
    texts = ["13/01/2024", "14/01/2024", "15/01/2024", "01/16/2024", "01/17/2024"]
    (finding,) = said(read(texts))
    assert (finding.code, finding.severity, finding.rows) == ("mostly_dates", "warning", 2)
    assert [example.line for example in finding.examples] == [5, 6]
    days = [f"2024-01-{day}T00:00:00" for day in (13, 14, 15)]
    assert [value and value[:19] for value in values(fixed(texts, finding))] == [*days, None, None]
