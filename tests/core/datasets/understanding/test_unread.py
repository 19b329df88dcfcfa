"""Columns that stay categories though they mean quantities: their owner hears of it."""

import pytest

from tests.core.datasets.understanding.texts import fixed, read, said, values

WORDS = ["Prefer not to say"] * 5
NUMBERS = ["45000", "52000", "61000", "70000", "45500", "38000"]


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (["00:03:21", "01:10:00", "00:59:59", "02:00:01", "00:00:09"], "times of day or durations"),
        (["7:05 AM", "12:30 PM", "1:45 pm", "11:59 a.m.", "3:00 PM"], "times of day or durations"),
        (["2h 5m", "1h 30m", "3h 59m", "12h 0m", "4h 4m"], "times of day or durations"),
        (["PT5M", "PT1H30M", "P1DT2H", "PT45S", "P3D"], "times of day or durations"),
        (["52°31'N", "48°08'N", "51°03'N", "50°56'N", "53°33'N"], "coordinates in degrees"),
        (["52.5, 13.4", "48.1, 11.6", "51.1, 13.7", "50.9, 7.0", "53.6, 10.0"], "pairs of numbers"),
        (["[1, 2]", "[3, 4]", "[5, 6]", "[7, 8]", "[9, 0]"], "lists or records"),
        (["1.2***", "-0.3*", "2.5**", "0.7", "4.1†"], "numbers with signs beside them"),
        (["<5", "<10", ">200", ">100", "<2"], "numbers with signs beside them"),
    ],
)
def test_quantities_of_other_kinds_are_said(texts: list[str], what: str) -> None:
    (finding,) = said(read(texts))
    assert (finding.code, finding.severity, finding.rows) == ("unread", "warning", len(texts))
    assert what in finding.message
    assert finding.examples[0].line == 2
    assert finding.fix == {"columns": [{"name": "x", "use": False}]}
    assert said(fixed(texts, finding)) == []


def test_strings_of_typed_files_are_looked_at_too() -> None:
    texts = ["08:00:00", "08:15:00", "08:30:00", "09:00:00", "10:45:00"]
    assert [finding.code for finding in said(read(texts, typed=True))] == ["unread"]


@pytest.mark.parametrize(
    "texts",
    [
        ["1.2.3", "1.10.0", "2.0.1", "0.9.12", "3.4.5"],
        ["10.0.0.1", "10.0.0.2", "10.1.0.7", "10.0.3.1", "10.0.0.9"],
        ["1-10", "11-50", "51-200", "201-500", "501-1000"],
        ["A1", "B2", "C3", "D4", "E5"],
        ["1. Primary", "2. Secondary", "3. Tertiary", "4. Other", "1. Primary"],
        ["red", "green", "blue", "7 up", "grey"],
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
    assert "6 of 11 texts are numbers" in finding.message
    assert finding.examples[0].line == 8
    assert values(fixed(texts, finding)) == [*map(float, NUMBERS), *[None] * 5]


def test_numbers_with_a_format_among_words_are_mended() -> None:
    texts = ["1.045,50 €", "2.052,00 €", "3.061,25 €", "auf Anfrage", "Tausch"]
    (finding,) = said(read(texts))
    assert values(fixed(texts, finding)) == [1045.5, 2052, 3061.25, None, None]


def test_dates_in_two_orders_are_said_and_mended() -> None:
    texts = ["13/01/2024", "14/01/2024", "15/01/2024", "01/16/2024", "01/17/2024"]
    (finding,) = said(read(texts))
    assert (finding.code, finding.severity, finding.rows) == ("mostly_dates", "warning", 2)
    assert [example.line for example in finding.examples] == [5, 6]
    days = [f"2024-01-{day}T00:00:00" for day in (13, 14, 15)]
    assert [value and value[:19] for value in values(fixed(texts, finding))] == [*days, None, None]


def test_iso_dates_among_others_are_dates() -> None:
    """As a workbook has them where some dates are texts."""
    found = read(["31.01.2024", "2024-02-01 00:00:00", "02.02.2024", "2024-02-03 00:00:00"])
    assert found.readings[0].type == "datetime"
    assert [value[:10] for value in values(found)] == [
        "2024-01-31",
        "2024-02-01",
        "2024-02-02",
        "2024-02-03",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20240131235958", "2024-01-31T23:59:58"), ("202401312359", "2024-01-31T23:59:00")],
)
def test_compact_dates_may_have_a_time(text: str, expected: str) -> None:
    found = read([text, text])
    assert found.readings[0].type == "datetime"
    assert values(found)[0].startswith(expected)


@pytest.mark.parametrize(
    "texts", [["١٢٫٥".replace("٫", "."), "٣"], ["१२.५", "३"], ["１２.５", "３"]]
)
def test_digits_of_other_scripts_are_digits(texts: list[str]) -> None:
    assert values(read(texts)) == [12.5, 3]


def test_a_stray_nul_makes_no_level() -> None:
    assert values(read(["ab", "ab\0", "cd"])) == ["ab", "ab", "cd"]
