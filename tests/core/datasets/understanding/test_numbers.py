"""Columns of numbers as files of many countries and programs write them."""

import pyarrow as pa
import pytest

from core.datasets.files.source import Source
from core.datasets.understanding.columns import understand
from core.exceptions import Invalid
from tests.core.datasets.understanding.texts import read, said, values


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
