"""Columns of numbers as files of many countries and programs write them."""

import pyarrow as pa
import pytest

from core.datasets.files.source import Source
from core.datasets.understanding.columns import understand
from core.datasets.understanding.number_formats import NumberFormat
from core.datasets.understanding.parsing import Unreadable, parse
from core.exceptions import Invalid
from tests.core.datasets.understanding.texts import fixed, read, said, values

TEN = [str(number) for number in range(10)]


@pytest.mark.parametrize(
    ("texts", "format_", "expected"),
    [
        ([" 1", "2 ", "\u00a03\u202f"], None, [1, 2, 3]),
        (["+5", "−7", "3-"], None, [5, -7, -3]),
        (["1e-3", "2E5"], None, [0.001, 200000.0]),
        ([".5", "1."], None, [0.5, 1.0]),
        (["12.-", "13.50"], None, [12.0, 13.5]),
        (["1,234.5", "12"], "1,234.56", [1234.5, 12.0]),
        (["1.234,5", "3"], "1.234,56", [1234.5, 3.0]),
        (["1 234,5", "2"], "1 234,56", [1234.5, 2.0]),
        (["1\u202f234,5", "2"], "1 234,56", [1234.5, 2.0]),
        (["1\u00a0234\u00a0567", "2"], "1 234.56", [1234567, 2]),
        (["1'234.5", "2"], "1'234.56", [1234.5, 2.0]),
        (["1’234.5", "2"], "1'234.56", [1234.5, 2.0]),
        (["12,34,567", "1,000"], "1,234.56", [1234567, 1000]),
        (["0,5", "1,25"], "1234,56", [0.5, 1.25]),
        (["0,125", "1,234"], "1234,56", [0.125, 1.234]),
        (["2,5", "1.000"], "1.234,56", [2.5, 1000.0]),
        (["$1,200.50", "-$5", "($7)"], "$1,234.56", [1200.5, -5.0, -7.0]),
        (["5 €", "6,5 €", "EUR 7"], "1234,56 €", [5.0, 6.5, 7.0]),
        (["€ 1.234,56", "€ 2"], "€1.234,56", [1234.56, 2.0]),
        (["CHF 1'200.00", "CHF 12.50"], "CHF 1'234.56", [1200.0, 12.5]),
        (["USD 5", "USD 6", "$7"], "USD 1234.56", [5, 6, 7]),
        (["Rs. 1,20,000", "Rs. 500"], "Rs.1,234.56", [120000, 500]),
        (["12 %", "13.5%"], "1234.56 %", [12.0, 13.5]),
        (["12 kg", "13kg", "14 Kg", "15 kg"], "1234.56 kg", [12, 13, 14, 15]),
        (["3 years", "1 year", "4 years"], "1234.56 years", [3, 1, 4]),
        (["12 m²", "13 m²"], "1234.56 m²", [12, 13]),
        (["12 m2", "13 m2"], "1234.56 m2", [12, 13]),
        (["7.5 l/100 km"], "1234.56 l/100 km", [7.5]),
        (["1.5K", "2M", "3"], "1.23456K", [1500.0, 2e6, 3.0]),
        (["$1.5M", "$300K"], "$1.23456K", [1.5e6, 3e5]),
        (["1,5 Mio", "2 Mrd."], "1,23456K", [1.5e6, 2e9]),
        (["(5)", "7", "1,000.5"], "1,234.56", [-5.0, 7.0, 1000.5]),
    ],
)
def test_numbers_of_every_style(
    texts: list[str], format_: str | None, expected: list[float]
) -> None:
    found = read(texts)
    assert (found.readings[0].type, found.readings[0].format) == ("number", format_)
    assert values(found) == expected


@pytest.mark.parametrize(
    ("texts", "decimal", "expected", "severity", "other"),
    [
        (["1,234", "5,678"], None, [1234, 5678], "warning", [1.234, 5.678]),
        (["1,234", "5,678"], ",", [1.234, 5.678], "info", [1234, 5678]),
        (["1.234", "5.678"], ",", [1234, 5678], "info", [1.234, 5.678]),
    ],
)
def test_three_digits_after_one_mark_are_a_guess_that_can_be_turned_around(
    texts: list[str], decimal: str | None, expected: list[float], severity: str, other: list[float]
) -> None:
    found = read(texts, decimal=decimal)
    assert values(found) == expected
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("thousands", severity, 2)
    assert (
        f"“{texts[0]}” is read as {expected[0]}; it could also mean {other[0]}" in finding.message
    )
    assert values(fixed(texts, finding)) == other


def test_a_point_is_a_decimal_point_unless_the_file_says_otherwise() -> None:
    found = read(["1.234", "5.678"])
    assert values(found) == [1.234, 5.678]
    assert said(found) == []


@pytest.mark.parametrize("word", ["-", "n/a", "#DIV/0!", "k.A.", r"\N", "unknown", "inf", "?", "."])
def test_words_for_missing_values_are_missing_in_any_share(word: str) -> None:
    found = read([word, "1.5", word, "2", word])
    assert values(found) == [None, 1.5, None, 2.0, None]
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("mostly_numeric", "info", 3)
    assert [(one.line, one.value) for one in finding.examples] == [(2, word), (4, word), (6, word)]
    assert found.table.column("x").null_count == 3


def test_a_few_other_texts_are_missing_and_shown() -> None:
    texts = [*TEN, "<5"]
    found = read(texts)
    assert values(found) == [*range(10), None]
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("mostly_numeric", "warning", 1)
    assert [(one.line, one.value) for one in finding.examples] == [(12, "<5")]
    assert values(fixed(texts, finding)) == texts


def test_more_than_a_tenth_of_other_texts_make_categories() -> None:
    texts = [*TEN, "a", "b"]
    assert values(read(texts)) == texts


def test_a_code_among_many_numbers_makes_codes() -> None:
    """A zip code in the last row, far from what a sample shows."""
    texts = [str(10_000 + n % 900) for n in range(5_000)] + ["01234"]
    found = read(texts)
    assert found.readings[0].type == "category"
    finding = next(one for one in said(found) if one.code == "codes")
    assert (finding.rows, finding.examples[0].line) == (1, 5002)
    assert values(fixed(texts, finding))[-1] == 1234


@pytest.mark.parametrize(
    ("texts", "code", "names"),
    [
        (["12 kg", "500 g"], "unit", ["“kg”", "“g”"]),
        (["100 m", "2 km", *TEN], "unit", ["“m”", "“km”"]),
        (["$5", "6 €"], "currency", ["“$”", "“€”"]),
        (["1,5", "1.234", "2,5", "2.5"], "thousands", ["“1,5”", "“2.5”"]),
    ],
)
def test_what_cannot_be_compared_is_an_error_that_names_it(
    texts: list[str], code: str, names: list[str]
) -> None:
    found = read(texts)
    assert (found.readings[0].type, values(found)) == ("category", texts)
    finding = next(one for one in said(found) if one.code == code)
    assert finding.severity == "error"
    assert all(name in finding.message for name in names)
    assert fixed(texts, finding).readings[0].type == "number"


MIXED = ["95,0", "96.9 m²", "98 m²", "1.234,5 m²", "1,234.5", "0,125", "12.3456"]


def test_cells_that_each_tell_their_decimal_mark_are_all_read() -> None:
    found = read(MIXED)
    assert values(found) == [95.0, 96.9, 98.0, 1234.5, 1234.5, 0.125, 12.3456]
    assert found.readings[0].format == "1234.56 or 1234,56 m²"
    marks, unit = said(found)
    assert (marks.code, marks.severity, marks.rows) == ("thousands", "info", 3)
    assert "“96.9 m²” and “95,0” have different decimal marks" in marks.message
    assert (unit.code, unit.rows) == ("unit", 3)
    assert [example.value for example in unit.examples] == ["96.9 m²", "98 m²", "1.234,5 m²"]


def test_new_texts_are_read_with_either_mark_and_what_does_not_tell_is_refused() -> None:
    reading = read(MIXED).readings[0]
    assert parse(["1,5", "1.5", "2 m²", "1.234,5"], reading).tolist() == [1.5, 1.5, 2.0, 1234.5]
    with pytest.raises(Unreadable, match=r"'1,234' is not a number such as 1234.56 or 1234,56 m²"):
        parse(["1,5", "1,234"], reading)
    assert values(read(MIXED, type="number")) == values(read(MIXED))
    only = read(MIXED[:3], format=str(NumberFormat.parse(reading.format).with_decimal(",")))
    assert values(only) == [95.0, 96.9, 98.0]  # a cell that tells its mark is read by it


@pytest.mark.parametrize("commas", [3, 7])
def test_if_a_cell_does_not_tell_the_mark_that_reads_most_is_offered(commas: int) -> None:
    texts = [f"{n},5" for n in range(commas)] + [f"{n}.5" for n in range(10 - commas)] + ["1.234"]
    found = read([*texts, "7"])
    assert found.readings[0].type == "category"
    (finding, *_) = [one for one in said(found) if one.code == "thousands"]
    mended = fixed([*texts, "7"], finding)
    assert mended.profiles[0].missing == 0  # a cell that tells its mark is read by it
    assert values(mended)[-2] == (1.234 if commas == 3 else 1234.0)


def test_a_few_cells_with_the_other_mark_are_read_too() -> None:
    texts = [f"{n}.25" for n in range(50)] + ["3,5", "n/a"]
    found = read(texts)
    assert values(found)[-2:] == [3.5, None]
    assert "mostly_numeric" not in [one.code for one in said(found) if one.severity != "info"]


def test_a_late_unit_is_seen() -> None:
    """Row 4000 of 5000 gives grams: 500 g must not become 500 kg."""
    texts = [f"{n} kg" for n in range(5_000)]
    texts[4_000] = "500 g"
    found = read(texts)
    assert (found.readings[0].type, said(found)[0].severity) == ("category", "error")


@pytest.mark.parametrize("text", ["1e39", "1e400"])
def test_numbers_outside_float32_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match=f"column 'x', line 3: '{text}' is infinite or"):
        read(["1", text])


def test_columns_decide_for_each_other() -> None:
    """The file writes 3,5, so that 1.234 elsewhere is 1234."""
    table = pa.table({"a": ["3,5", "2,25"], "b": ["1.234", "5.678"]})
    _, b = understand(Source(table=table, typed=False), {})
    assert b.column.to_pylist() == [1234, 5678]
    assert [one.code for one in b.findings] == ["thousands"]


def test_points_that_may_stand_between_thousands_are_asked() -> None:
    texts = ["1.234", "5.678", "9.123"]
    found = read(texts)
    assert values(found) == [1.234, 5.678, 9.123]
    (finding,) = said(found)
    assert (finding.code, finding.severity) == ("thousands", "warning")
    assert values(fixed(texts, finding)) == [1234, 5678, 9123]
    assert said(read([*texts, "0.5"])) == []
