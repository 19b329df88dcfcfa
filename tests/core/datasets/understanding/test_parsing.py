"""Texts of predictions are read as the training data was."""

from typing import Any

import numpy as np
import pytest

from core.datasets.understanding.parsing import Unreadable, parse
from models.features.columns import ColumnReading


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


@pytest.mark.parametrize(
    ("format_", "text", "expected"),
    [
        (None, "2024-01-31T10:30+02:00", "2024-01-31T08:30"),
        ("%d.%m.%Y", "1.2.2024", "2024-02-01"),
        ("unix", "1700000000", "2023-11-14T22:13:20"),
        (None, "-", "NaT"),
    ],
)
def test_times_of_requests(format_: str | None, text: str, expected: str) -> None:
    found = parse([text], reading("datetime", format_))
    assert found.dtype == np.dtype("datetime64[us]")
    np.testing.assert_array_equal(found, np.array([expected], "datetime64[us]"))


@pytest.mark.parametrize(
    ("how", "texts", "expected"),
    [
        (reading("category"), [" a ", "NA", "", None, "-"], ["a", None, None, None, None]),
        (reading("category", "exact"), [" a ", "NA", "-"], [" a ", None, "-"]),
        (reading("category", None, "b"), ["a", "b"], ["a", None]),
        (reading("text"), [" a ", None], [" a ", ""]),
    ],
)
def test_strings_of_requests(how: ColumnReading, texts: list[Any], expected: list[Any]) -> None:
    assert parse(texts, how).tolist() == expected


@pytest.mark.parametrize(
    ("how", "texts", "message"),
    [
        (reading("number"), ["1", "abc"], r"'abc' is not a number such as 1234\.56"),
        (reading("number", "1234,56"), ["1", "1.234"], r"'1\.234' is not .* 1234,56"),
        (reading("datetime", "%d.%m.%Y"), [None, "31.02.2024"], r"a date such as 31\.12\.2023"),
        (reading("boolean", "yes/no"), ["no", "maybe"], "'maybe' is not yes or no"),
    ],
)
def test_a_text_that_does_not_fit_is_named(
    how: ColumnReading, texts: list[str | None], message: str
) -> None:
    with pytest.raises(Unreadable, match=message) as refused:
        parse(texts, how)
    assert (refused.value.index, refused.value.value) == (1, texts[1])
