"""Columns of dates and times in the usual orders."""

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
