"""Texts become what they mean, and fixes go before what was found."""

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
from tests.core.datasets.understanding.texts import fixed, read, said, values


@pytest.mark.parametrize(
    ("texts", "type_", "expected"),
    [
        (["1", "-2", None], "number", [1, -2, None]),
        (["1.5", "2e3", "NA"], "number", [1.5, 2000.0, None]),
        (["007", "123"], "category", ["007", "123"]),
        (["0x1A", "12"], "category", ["0x1A", "12"]),
        (["99999999999999999999", "1"], "number", [1e20, 1.0]),
        (["1234567890123456789", "1234567890123456780"], "category", None),
        (["true", "False", "", "TRUE"], "boolean", [True, False, None, True]),
        (["yes", "Y", "no", "N", "yes", "no"], "boolean", ["yes", "yes", "no", "no", "yes", "no"]),
        (["Ja", "Nein", None], "boolean", ["Ja", "Nein", None]),
        (["y", "y"], "category", ["y", "y"]),
        (["2020-02-29", None], "datetime", ["2020-02-29T00:00:00Z", None]),
        ([None, "nan"], "number", [None, None]),
        (["+491701234567", "+491701234568"], "category", None),
        (["1.2.3", "1.2.4"], "category", None),
        (["192.168.100.200", "192.168.100.201"], "category", None),
        (["1/2", "3/4"], "category", None),
        (["08:30", "09:15"], "category", None),
        (["May", "June"], "category", None),
        (["٣", "٤"], "number", [3, 4]),
        (["true", "false", "1"], "category", None),
    ],
)
def test_texts_become_what_they_mean(
    texts: list[str | None], type_: str, expected: list[Any] | None
) -> None:
    found = read(texts)
    assert found.profiles[0].type == found.readings[0].type == type_
    assert values(found) == (expected or texts)


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
