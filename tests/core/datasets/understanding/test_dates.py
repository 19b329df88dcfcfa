"""Columns of dates and times in the usual orders."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.files.source import Source
from core.datasets.understanding.columns import understand
from core.datasets.understanding.dates import formats as date_formats
from core.datasets.understanding.dates.formats import DateFormat
from core.datasets.understanding.parsing import parse
from models.features.columns import ColumnReading
from tests.core.datasets.understanding.texts import fixed, read, said, values

JANUARY = [f"{day:02}.01.2024" for day in range(1, 31)]


@pytest.mark.parametrize(
    ("texts", "format_", "expected"),
    [
        (["2024-1-5"], "%Y-%m-%d", ["2024-01-05T00:00:00Z"]),
        (
            ["2024-01-31T10:30:00.1234567Z"],
            "%Y-%m-%dT%H:%M:%S.%f%z",
            ["2024-01-31T10:30:00.123456Z"],
        ),
        (["31.12.2024", "1.2.2024"], "%d.%m.%Y", ["2024-12-31T00:00:00Z", "2024-02-01T00:00:00Z"]),
        (["31/12/2024"], "%d/%m/%Y", ["2024-12-31T00:00:00Z"]),
        (["12/31/2024", "1/2/2024"], "%m/%d/%Y", ["2024-12-31T00:00:00Z", "2024-01-02T00:00:00Z"]),
        (["2024/01/31 08:00"], "%Y/%m/%d %H:%M", ["2024-01-31T08:00:00Z"]),
        (["31-Dec-2024"], "%d-%b-%Y", ["2024-12-31T00:00:00Z"]),
        (
            ["January 5, 2024", "Mar 12th, 2024"],
            "%b %d, %Y",
            ["2024-01-05T00:00:00Z", "2024-03-12T00:00:00Z"],
        ),
        (
            ["5. März 2024", "12. Mai 2023"],
            "%d. %b %Y",
            ["2024-03-05T00:00:00Z", "2023-05-12T00:00:00Z"],
        ),
        (["5 de marzo de 2024"], "%d %b %Y", ["2024-03-05T00:00:00Z"]),
        (["Mon, 01 Jan 2024 10:00:00 +0200"], "%a, %d %b %Y %H:%M:%S %z", ["2024-01-01T08:00:00Z"]),
        (["01/Jan/2024:10:00:00 +0000"], "%d/%b/%Y:%H:%M:%S %z", ["2024-01-01T10:00:00Z"]),
        (
            ["12/31/24 1:05 PM", "1/2/99 12:10 AM"],
            "%m/%d/%y %I:%M %p",
            ["2024-12-31T13:05:00Z", "1999-01-02T00:10:00Z"],
        ),
        (["31.12.2024, 10:30 Uhr"], "%d.%m.%Y, %H:%M Uhr", ["2024-12-31T10:30:00Z"]),
        (["20240131", "20240201"], "%Y%m%d", ["2024-01-31T00:00:00Z", "2024-02-01T00:00:00Z"]),
        (["2024Q1", "2024Q4"], "%YQ%q", ["2024-01-01T00:00:00Z", "2024-10-01T00:00:00Z"]),
        (["2024-W05", "2020-W53"], "%G-W%V", ["2024-01-29T00:00:00Z", "2020-12-28T00:00:00Z"]),
        (["Jan 2024", "Feb 2024"], "%b %Y", ["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"]),
        (
            ["01.02.2024 10:30", "15.02.2024"],
            "%d.%m.%Y %H:%M",
            ["2024-02-01T10:30:00Z", "2024-02-15T00:00:00Z"],
        ),
    ],
)
def test_dates_of_every_order(texts: list[str], format_: str, expected: list[str]) -> None:
    found = read(texts)
    assert (found.readings[0].type, found.readings[0].format) == ("datetime", format_)
    assert values(found) == expected


@pytest.mark.parametrize(
    ("texts", "decimal", "first", "other", "severity"),
    [
        (["01/02/2024", "03/04/2024"], None, "2024-01-02", "2024-02-01", "warning"),
        (["01/02/2024", "03/04/2024"], ",", "2024-02-01", "2024-01-02", "warning"),
        (["01.02.2024", "03.04.2024"], None, "2024-02-01", "2024-01-02", "info"),
    ],
)
def test_an_ambiguous_order_is_asked(
    texts: list[str], decimal: str | None, first: str, other: str, severity: str
) -> None:
    found = read(texts, decimal=decimal)
    assert values(found)[0] == f"{first}T00:00:00Z"
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("dates_ambiguous", severity, 2)
    assert f"“{texts[0]}” is read as {first}; it could also mean {other}" in finding.message
    assert values(fixed(texts, finding))[0] == f"{other}T00:00:00Z"


def test_other_columns_tell_the_order() -> None:
    table = pa.table({"a": ["31/12/2024", "1/2/2024"], "b": ["01/02/2024", "03/04/2024"]})
    _, b = understand(Source(table=table, typed=False), {})
    assert b.reading.format == "%d/%m/%Y"


def test_the_last_row_tells_the_order() -> None:
    texts = ["01/02/2024"] * 5000 + ["13/02/2024"]
    found = read(texts)
    assert found.readings[0].format == "%d/%m/%Y"
    assert said(found) == []


def test_equal_days_and_months_are_not_asked() -> None:
    assert said(read(["01/01/2024", "02/02/2024"])) == []


def test_impossible_days_and_words_are_missing() -> None:
    texts = [*JANUARY, "31.02.2024", "-"]
    found = read(texts)
    assert values(found)[-3:] == ["2024-01-30T00:00:00Z", None, None]
    words, days = said(found)
    assert (words.code, words.severity, words.examples[0].line) == ("mostly_dates", "info", 33)
    assert (days.code, days.severity, days.rows) == ("mostly_dates", "warning", 1)
    assert [(one.line, one.value) for one in days.examples] == [(32, "31.02.2024")]
    assert values(fixed(texts, days))[:2] == JANUARY[:2]


def test_compact_dates_are_said_and_can_be_numbers() -> None:
    texts = ["20240131", "20240201"]
    (finding,) = said(read(texts))
    assert (finding.code, finding.severity) == ("dates_compact", "info")
    assert values(fixed(texts, finding)) == [20240131, 20240201]
    assert read(["20240131", "20241301"]).readings[0].type == "number"  # no month 13


def test_years_of_two_digits_are_said() -> None:
    (finding,) = said(read(["31/12/68", "31/12/69"]))
    assert (finding.code, "1969 to 2068" in finding.message) == ("dates_short_years", True)


@pytest.mark.parametrize(
    ("texts", "format_", "expected"),
    [
        (["1700000000"], "unix", "2023-11-14T22:13:20Z"),
        (["1700000000123"], "unix_ms", "2023-11-14T22:13:20.123000Z"),
        (["45322"], "excel", "2024-01-31T00:00:00Z"),
        (["45322.5"], "excel", "2024-01-31T12:00:00Z"),
        (["01.02.2024"], "%m.%d.%Y", "2024-01-02T00:00:00Z"),
    ],
)
def test_numbers_are_times_only_by_a_fix(texts: list[str], format_: str, expected: str) -> None:
    assert values(read(texts, type="datetime", format=format_)) == [expected]


@pytest.mark.parametrize(
    "texts", [["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"], ["2024-13-01", "2024-14-01"]]
)
def test_what_is_no_one_time_stays(texts: list[Any]) -> None:
    assert values(read(texts)) == texts


FORMS = ["2024-01-21", "22.12.2023", "11 Jun 2022", "2024-02-03", "01.02.2023", "Jul 4, 2024"]


def test_dates_in_several_forms_are_all_read() -> None:
    found = read(FORMS)
    days = ["2024-01-21", "2023-12-22", "2022-06-11", "2024-02-03", "2023-02-01", "2024-07-04"]
    assert values(found) == [f"{day}T00:00:00Z" for day in days]
    assert found.readings[0].format == "%Y-%m-%d or %d.%m.%Y or %d %b %Y or %b %d, %Y"
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("dates_mixed", "info", 4)
    assert "“2024-01-21” and “22.12.2023”, “11 Jun 2022”, “Jul 4, 2024”" in finding.message
    again = parse(["11.6.2022", "2022-06-11"], found.readings[0])
    assert again[0] == again[1] == np.datetime64("2022-06-11")


def test_day_and_month_never_change_places_within_a_column() -> None:
    texts = ["31/12/2023", "12/31/2023", "30/11/2023", "11/30/2023", "29/10/2023"]
    found = read(texts)
    assert found.readings[0].type == "category"
    (finding,) = said(found)
    assert fixed(texts, finding).profiles[0].missing == 2


def test_a_form_that_was_not_given_is_named_and_offered() -> None:
    found = read(FORMS, type="datetime", format="%Y-%m-%d")
    (finding,) = said(found)
    assert "dates such as 2023-12-31" in finding.message
    assert "“22.12.2023”, “11 Jun 2022”" in finding.message
    assert "another form" in finding.message
    assert "does not exist" not in finding.message
    assert values(fixed(FORMS, finding)) == values(read(FORMS))


def test_dates_among_words_are_offered_in_all_their_forms() -> None:
    texts = [*FORMS, "soon", "later"]
    (finding,) = said(read(texts))
    assert finding.message.startswith("column 'x': 6 of 8 texts are dates such as 2023-12-31 or")
    assert fixed(texts, finding).profiles[0].missing == 2


@pytest.mark.parametrize("form", date_formats.EXAMPLES.split(", "))
def test_the_example_of_a_format_is_written_so(form: str) -> None:
    format_ = DateFormat.parse(form)
    ends = np.datetime64("2023-12-31"), np.datetime64("2024-01-01")
    (instant,) = parse([format_.example], ColumnReading(name="x", type="datetime", format=form))
    assert ends[0] <= instant < ends[1]


def test_iso_dates_beside_another_form_are_counted_and_told() -> None:
    """Workbooks hold ISO texts among dates: they were read, but neither counted nor named."""
    cells = ["22.12.2023"] * 60 + ["2022-01-02"] * 30 + ["11. Jun 2022"] * 10 + ["soon"] * 2
    got = read(cells)
    assert got.readings[0].format == "%d.%m.%Y or %d. %b %Y or %Y-%m-%d"
    (mixed,) = [one for one in got.findings if one.code == "dates_mixed"]
    assert mixed.rows == 40, "words that are no dates are not in another form"
    assert "(40 rows in another form than the usual one)" in mixed.message
    assert "“2022-01-02”" in mixed.message
