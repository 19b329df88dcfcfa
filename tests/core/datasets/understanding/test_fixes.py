"""What the owner of a data set says about a column goes before what its texts look like."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.files.source import Source
from core.datasets.understanding.columns import understand
from core.datasets.understanding.fixes import fixes_like
from core.datasets.understanding.parsing import parse
from core.exceptions import Invalid
from models.features.columns import ColumnReading
from tests.core.datasets.understanding.texts import read, values


@pytest.mark.parametrize(
    ("texts", "fix", "type_", "expected"),
    [
        (["00123", "12345"], {"type": "number"}, "number", [123, 12345]),
        (["1,234", "2"], {"type": "number", "format": "1234,56"}, "number", [1.234, 2.0]),
        (["12 kg", "500 g"], {"format": "1234.56 kg"}, "number", [12, None]),
        (["1", "2.5", "-999.0"], {"missing": ("-999",)}, "number", [1.0, 2.5, None]),
        (["a", "b", "z"], {"missing": ("z",)}, "category", ["a", "b", None]),
        ([" a", "A"], {"format": "exact"}, "category", [" a", "A"]),
        ([" a", "A"], {"type": "text"}, "text", [" a", "A"]),
        (["1", "0", None], {"type": "boolean"}, "boolean", [True, False, None]),
        (["good", "bad"], {"format": "good/bad"}, "boolean", [True, False]),
        (["31.12.2024"], {"type": "datetime"}, "datetime", ["2024-12-31T00:00:00Z"]),
        (["1", "x1"], {"type": "number"}, "number", [1, None]),
    ],
)
def test_fixes_win(texts: list[Any], fix: dict[str, Any], type_: str, expected: list[Any]) -> None:
    found = read(texts, **fix)
    assert (found.readings[0].type, values(found)) == (type_, expected)
    assert found.readings[0].missing == fix.get("missing", ())


@pytest.mark.parametrize(
    ("texts", "fix", "path", "message"),
    [
        (["-", "a"], {"type": "number"}, "/columns/0/type", "no number: line 3 holds 'a'"),
        (["a"], {"type": "datetime"}, "/columns/0/type", "no datetime .*: line 2 holds 'a'"),
        (["1", "2"], {"type": "boolean"}, "/columns/0/type", "no boolean .*: line 3 holds '2'"),
        (["a"], {"format": "a/b/c"}, "/columns/0/format", "write 1234.56 as the file does"),
    ],
)
def test_what_cannot_be_read_so_is_refused_by_line(
    texts: list[str], fix: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        read(texts, **fix)
    assert [error[0] for error in refused.value.errors] == [path]


def test_another_file_is_read_like_the_first() -> None:
    first = read(["1.234,5", "2,5"]), read(["13/02/2024"]), read(["00123"])
    like = [fixes_like(one.readings)[0] for one in first]
    texts = ["1.234"], ["01/02/2024"], ["12345"]
    again = [
        understand(Source(table=pa.table({"x": one}), typed=False), {"x": fix})[
            0
        ].column.to_pylist()
        for one, fix in zip(texts, like, strict=True)
    ]
    assert again[0] == [1234]
    assert str(again[1][0]) == "2024-02-01 00:00:00+00:00"
    assert again[2] == ["12345"]


@pytest.mark.parametrize(
    ("format_", "mark", "text", "value"),
    [
        ("1234,56", ".", "125.1", 125.1),
        ("1.234,56 €", ".", "1,125.1 €", 1125.1),
        ("1,234.56", ",", "1.125,5", 1125.5),
        (None, ",", "125,1", 125.1),
    ],
)
def test_a_decimal_mark_that_is_given_goes_before_that_of_the_first_file(
    format_: str | None, mark: str | None, text: str, value: float
) -> None:
    reading = ColumnReading(name="x", type="number", format=format_)
    (fix,) = fixes_like([reading], mark)
    source = Source(table=pa.table({"x": [text, "2"]}), typed=False)
    (found,) = understand(source, {"x": fix})
    assert found.column.to_pylist() == [value, 2]


def reading(type_: str, format_: str | None = None, *missing: str) -> ColumnReading:
    return ColumnReading(name="x", type=type_, format=format_, missing=missing)


@pytest.mark.parametrize(
    ("how", "texts", "expected"),
    [
        (reading("number"), [" 1.5", None, "-", "007"], [1.5, np.nan, np.nan, 7.0]),
        (reading("number", "1.234,56 €"), ["1.234,5 €", " 5"], [1234.5, 5.0]),
        (reading("number", "1234,56 m²"), ["117.2", "95.0 m²", "95,0", "78"], [117.2, 95, 95, 78]),
        (reading("number", "1234,56"), ["0.125", "1234.567", "-1.5"], [0.125, 1234.567, -1.5]),
        (reading("number", "1.234,56"), ["1.234", "1,234.5", "12.34"], [1234.0, 1234.5, 12.34]),
        (reading("number", None, "-999"), ["-999.0", "1"], [np.nan, 1.0]),
        (reading("boolean"), ["true", "FALSE", ""], [1.0, 0.0, np.nan]),
        (reading("boolean", "Ja/Nein"), ["ja", "N", "NA"], [1.0, 0.0, np.nan]),
    ],
)
def test_requests_are_read_as_the_training_data(
    how: ColumnReading, texts: list[str | None], expected: list[float]
) -> None:
    found = parse(texts, how)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
