"""Texts that are numbers or dates, in the styles of many countries."""

from datetime import datetime, timedelta
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.datasets.files.source import Source
from core.datasets.understanding.columns import understand
from core.datasets.understanding.dates import formats as date_formats
from core.datasets.understanding.dates.formats import DateFormat
from core.datasets.understanding.number_formats import NumberFormat
from core.datasets.understanding.parsing import parse
from core.exceptions import Invalid
from models.features.columns import ColumnReading
from tests.core.datasets.understanding.texts import fixed, read, said, values


@pytest.mark.parametrize(
    ("texts", "format_", "expected"),
    [
        ([" 1", "2 ", "\u00a03\u202f"], None, [1, 2, 3]),
        (["+5", "−7", "3-"], None, [5, -7, -3]),
        (["12.-", "13.50"], None, [12.0, 13.5]),
        (["1,234.5", "12"], "1,234.56", [1234.5, 12.0]),
        (["1.234,5", "3"], "1.234,56", [1234.5, 3.0]),
        (["1\u202f234,5", "2"], "1 234,56", [1234.5, 2.0]),
        (["1\u00a0234\u00a0567", "2"], "1 234.56", [1234567, 2]),
        (["1’234.5", "2"], "1'234.56", [1234.5, 2.0]),
        (["12,34,567", "1,000"], "1,234.56", [1234567, 1000]),
        (["2,5", "1.000"], "1.234,56", [2.5, 1000.0]),
        (["$1,200.50", "-$5", "($7)"], "$1,234.56", [1200.5, -5.0, -7.0]),
        (["5 €", "6,5 €", "EUR 7"], "1234,56 €", [5.0, 6.5, 7.0]),
        (["USD 5", "USD 6", "$7"], "USD 1234.56", [5, 6, 7]),
        (["Rs. 1,20,000", "Rs. 500"], "Rs.1,234.56", [120000, 500]),
        (["12 kg", "13kg", "14 Kg", "15 kg"], "1234.56 kg", [12, 13, 14, 15]),
        (["12 m²", "13 m²"], "1234.56 m²", [12, 13]),
        (["7.5 l/100 km"], "1234.56 l/100 km", [7.5]),
        (["1.5K", "2M", "3"], "1.23456K", [1500.0, 2e6, 3.0]),
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


MIXED = ["95,0", "96.9 m²", "98 m²", "1.234,5 m²", "1,234.5", "0,125", "12.3456"]


def test_cells_that_each_tell_their_decimal_mark_are_all_read() -> None:
    found = read(MIXED)
    assert values(found) == [95.0, 96.9, 98.0, 1234.5, 1234.5, 0.125, 12.3456]
    assert found.readings[0].format == "1234.56 or 1234,56 m²"
    marks, unit = said(found)
    assert (marks.code, marks.severity, marks.rows) == ("thousands", "info", 3)
    assert (unit.code, unit.rows) == ("unit", 3)
    assert [example.value for example in unit.examples] == ["96.9 m²", "98 m²", "1.234,5 m²"]


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


PERIODS = {
    "2004-04-01": [
        *("2004Q2", "2004q2", "2004-Q2", "2004/Q2", "2004:Q2", "Q2/2004", "Q2-2004", "2Q2004"),
        *("2Q04", "2004T2", "2004-T2", "T2/2004", "2004 Q2", "Q2 2004", "2. Quartal 2004"),
        *("II. Quartal 2004", "Quartal 2/2004", "2004 T2", "2e trimestre 2004"),
        *("2º trimestre de 2004", "2nd quarter of 2004", "Q2 '04", "2. Q. 2004"),
    ],
    "2014-02-01": [
        *("2014M02", "2014-M02", "2014-M2", "2014m2", "M02/2014", "2014-02", "02/2014", "2/2014"),
        *("02.2014", "2014_02", "Feb-2014", "2014 M02", "Februar 2014", "févr. 2014", "2014 Feb"),
        *("2014-Feb", "2014, February"),
    ],
    "2019-01-14": [
        *("2019-W03", "2019W03", "2019w3", "2019-W3", "W03/2019", "KW3/2019", "2019-KW03"),
        *("2019-W03-1", "KW 3/2019", "3. KW 2019", "2019 KW 3", "Week 3, 2019", "Woche 3 2019"),
        "2019 W03",
    ],
    "2004-07-01": [
        *("2004H2", "2004-H2", "2004S2", "2004-S2", "H2/2004", "2H2004", "H2 2004"),
        *("2. Halbjahr 2004", "2º semestre 2004", "2004 S2", "HJ 2/2004"),
    ],
}


@pytest.mark.parametrize(("day", "text"), [(day, one) for day in PERIODS for one in PERIODS[day]])
def test_a_period_is_the_day_on_which_it_begins(day: str, text: str) -> None:
    found = read([text])
    assert values(found) == [f"{day}T00:00:00Z"]
    again = parse([text], found.readings[0])
    assert again[0] == np.datetime64(day)


@pytest.mark.parametrize(
    "texts",
    [
        ["2004Q5", "2004Q1"],  # no fifth quarter
        ["2014X01", "2014X02"],
        ["M1 7", "M2 8"],
        ["1234W05", "4321W06"],  # no years of ours
        ["K1-04", "W2-17"],  # codes
    ],
)
def test_codes_are_no_periods(texts: list[str]) -> None:
    assert read(texts).readings[0].type == "category"


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["201411", "201412", "201501"], "datetime"),
        (["201411", "201413", "201501"], "number"),
        (["200101", "201207", "205510"], "number"),  # too far apart for months
        (["201411", "201412"], "number"),
    ],
)
def test_numbers_are_months_if_all_are_and_near_to_each_other(texts: list[str], type_: str) -> None:
    assert read(texts).readings[0].type == type_


def test_the_last_row_or_another_column_tells_the_order() -> None:
    found = read(["01/02/2024"] * 5000 + ["13/02/2024"])
    assert found.readings[0].format == "%d/%m/%Y"
    assert said(found) == []
    table = pa.table({"a": ["31/12/2024", "1/2/2024"], "b": ["01/02/2024", "03/04/2024"]})
    _, b = understand(Source(table=table, typed=False), {})
    assert b.reading.format == "%d/%m/%Y"


def test_compact_dates_are_said_and_can_be_numbers() -> None:
    texts = ["20240131", "20240201"]
    (finding,) = said(read(texts))
    assert (finding.code, finding.severity) == ("dates_compact", "info")
    assert values(fixed(texts, finding)) == [20240131, 20240201]
    assert read(["20240131", "20241301"]).readings[0].type == "number"  # no month 13


FORMS = ["2024-01-21", "22.12.2023", "11 Jun 2022", "2024-02-03", "01.02.2023", "Jul 4, 2024"]


def test_dates_in_several_forms_are_all_read() -> None:
    found = read(FORMS)
    days = ["2024-01-21", "2023-12-22", "2022-06-11", "2024-02-03", "2023-02-01", "2024-07-04"]
    assert values(found) == [f"{day}T00:00:00Z" for day in days]
    assert found.readings[0].format == "%Y-%m-%d or %d.%m.%Y or %d %b %Y or %b %d, %Y"
    (finding,) = said(found)
    assert (finding.code, finding.severity, finding.rows) == ("dates_mixed", "info", 4)
    again = parse(["11.6.2022", "2022-06-11"], found.readings[0])
    assert again[0] == again[1] == np.datetime64("2022-06-11")


def test_day_and_month_never_change_places_within_a_column() -> None:
    texts = ["31/12/2023", "12/31/2023", "30/11/2023", "11/30/2023", "29/10/2023"]
    found = read(texts)
    assert found.readings[0].type == "category"
    (finding,) = said(found)
    assert fixed(texts, finding).profiles[0].missing == 2


@pytest.mark.parametrize("form", date_formats.EXAMPLES.split(", "))
def test_the_example_of_a_format_is_written_so(form: str) -> None:
    format_ = DateFormat.parse(form)
    ends = np.datetime64("2023-10-01"), np.datetime64("2024-01-01")  # a period begins earlier
    (instant,) = parse([format_.example], ColumnReading(name="x", type="datetime", format=form))
    assert ends[0] <= instant < ends[1]


NUMBERS = st.lists(
    st.integers(-(10**9), 10**9).map(lambda cents: cents / 100), min_size=3, max_size=20
)
AFFIXES = [("", False), ("€", False), ("$", True), ("CHF", True), ("%", False), ("kg", False)]
STYLES = [
    NumberFormat(decimal, group, affix, before)
    for place, (decimal, group) in enumerate(
        [*product(".", ("", ",", " ", "'")), *product(",", ("", ".", " ", "'"))]
    )
    for affix, before in (AFFIXES[place % 6], AFFIXES[(place + 3) % 6])
]


def written(number: float, style: NumberFormat) -> str:
    """The number with two digits after the decimal mark."""
    text = f"{abs(number):,.2f}".translate({ord(","): style.group, ord("."): style.decimal})
    sign = "-" if number < 0 else ""
    if not style.affix:
        return sign + text
    return f"{sign}{style.affix}{text}" if style.before else f"{sign}{text} {style.affix}"


@pytest.mark.parametrize("style", STYLES, ids=str)
@settings(max_examples=10, deadline=None)
@given(numbers=NUMBERS)
def test_numbers_come_back(style: NumberFormat, numbers: list[float]) -> None:
    found = read([written(number, style) for number in numbers])
    assert found.readings[0].type == "number"
    assert values(found) == numbers
    assert NumberFormat.parse(str(style)) == style


EPOCH = datetime.fromisoformat("1970-01-01")
MOMENTS = st.integers(-(2**31), 2**32).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
ORDERS = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%B %d, %Y", "%d-%b-%Y", "%a, %d %b %Y"]
TIMES = ["", " %H:%M", " %H:%M:%S", " %I:%M %p"]


@pytest.mark.parametrize(("order", "time"), list(zip(ORDERS, [*TIMES, *TIMES[1:]], strict=True)))
@settings(max_examples=10, deadline=None)
@given(days=st.lists(MOMENTS, min_size=1, max_size=9))
def test_dates_come_back(order: str, time: str, days: list[datetime]) -> None:
    kept = [day.replace(microsecond=0, second=day.second if "%S" in time else 0) for day in days]
    if not time:
        kept = [day.replace(hour=0, minute=0) for day in kept]
    found = read([day.strftime(order + time) for day in kept])
    assert values(found) == [day.isoformat() + "Z" for day in kept]
