"""Columns of texts: what they are, by tables of texts and the values that they mean."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.columns.conversion import to_json, to_numpy
from core.datasets.files.ingest import Ingested, ingest
from core.datasets.files.source import Source
from core.datasets.understanding.parsing import Unreadable, parse
from models.features.columns import ColumnReading


def read(*texts: str | None) -> Ingested:
    table = pa.table({"x": pa.array(texts, pa.string())})
    return ingest(Source(table=table, typed=False))


def values(found: Ingested) -> list[Any]:
    return [row["x"] for row in to_json(found.table)]


@pytest.mark.parametrize(
    ("texts", "type_", "expected"),
    [
        (["1", "-2", None], "number", [1, -2, None]),
        (["1.5", "2e3", "NA"], "number", [1.5, 2000.0, None]),
        (["007", "123"], "category", ["007", "123"]),
        (["0x1A", "12"], "category", ["0x1A", "12"]),
        (["0", "-0.5", "0.25"], "number", [0.0, -0.5, 0.25]),
        (["99999999999999999999", "1"], "number", [1e20, 1.0]),
        (["1234567890123456789", "1234567890123456780"], "category", None),
        (["true", "False", "", "TRUE"], "boolean", [True, False, None, True]),
        (["T", "F", "NULL"], "boolean", [True, False, None]),
        (["WAHR", "FALSCH"], "boolean", [True, False]),
        (["yes", "Y", "no", "N", "yes", "no"], "boolean", ["yes", "yes", "no", "no", "yes", "no"]),
        (["Ja", "Nein", None], "boolean", ["Ja", "Nein", None]),
        (["y", "y"], "category", ["y", "y"]),
        (["2020-02-29", None], "datetime", ["2020-02-29T00:00:00Z", None]),
        ([None, "nan"], "number", [None, None]),
    ],
)
def test_texts_become_what_they_mean(
    texts: list[str | None], type_: str, expected: list[Any] | None
) -> None:
    found = read(*texts)
    assert found.profiles[0].type == found.readings[0].type == type_
    assert values(found) == (expected or texts)


def test_words_of_yes_and_no_are_bits_to_models() -> None:
    found = read("no", "yes", None, "Yes")
    assert found.readings[0].format == "yes/no"
    assert found.profiles[0].levels == ("yes", "no")
    assert found.profiles[0].mean == pytest.approx(2 / 3)
    bits = to_numpy(found.table.column("x"), "boolean")
    np.testing.assert_array_equal(bits, [0.0, 1.0, np.nan, 1.0])


@pytest.mark.parametrize(
    ("reading", "texts", "expected"),
    [
        (ColumnReading(name="x", type="number"), [" 1.5", None, "-"], [1.5, np.nan, np.nan]),
        (ColumnReading(name="x", type="boolean"), ["true", "FALSE", ""], [1.0, 0.0, np.nan]),
        (ColumnReading(name="x", type="boolean", format="Ja/Nein"), ["ja", "N"], [1.0, 0.0]),
    ],
)
def test_requests_are_read_as_the_training_data(
    reading: ColumnReading, texts: list[str | None], expected: list[float]
) -> None:
    np.testing.assert_array_equal(parse(texts, reading), expected)


def test_a_text_that_does_not_fit_is_named() -> None:
    with pytest.raises(Unreadable, match=r"'abc' is not a number such as 1234\.56") as refused:
        parse(["1", "abc"], ColumnReading(name="x", type="number"))
    assert (refused.value.index, refused.value.value) == (1, "abc")
