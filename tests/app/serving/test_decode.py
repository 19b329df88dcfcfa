"""Reading many rows: in blocks, exactly, and with the right pointer to the one that is wrong."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.exceptions import Invalid
from core.inputs.records import decode, num_rows, read_rows
from core.inputs.values import BLOCK_VALUES
from models.features.columns import InputColumn

LAST = BLOCK_VALUES + 4999  # in the second block


def features(**types: str) -> list[InputColumn]:
    return [InputColumn(name=name, type=type_) for name, type_ in types.items()]


def error(inputs: Any, of: list[InputColumn]) -> str:
    with pytest.raises(Invalid) as caught:
        decode(inputs, of)
    return caught.value.errors[0][0]


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("number", 1.5, "1.5.2"),
        ("boolean", True, 2),
        ("category", "oak", 3),
        ("text", "a nice house", 3),
        ("datetime", "2026-01-31", "yesterday"),
        ("tensor", [1, 2], [1, 2, 3]),
    ],
)
def test_a_wrong_value_is_found_in_any_block_and_form(type_: str, good: Any, bad: Any) -> None:
    values = [good] * LAST + [bad]
    of, mixed = features(a=type_), features(a=type_, b="boolean")
    assert error([[v] for v in values], of) == f"/inputs/{LAST}/0"
    assert error([[v, None] for v in values], mixed) == f"/inputs/{LAST}/0"
    assert error([{"a": v} for v in values], of) == f"/inputs/{LAST}/a"
    assert error({"a": values}, of) == f"/inputs/a/{LAST}"
    assert len(decode({"a": values[:-1]}, of)["a"]) == LAST


FRAME = pd.DataFrame({"deck": ["A", "B"], "age": [None, 3.0]}, index=[7, 8])
FERRY = features(deck="category", age="number")
ORIENTS: dict[Any, dict[str, str]] = {
    "records": {"value": "/1/age", "missing": "/0/age", "unknown": "/0/old"},
    "index": {"value": "/8/age", "missing": "/7/age", "unknown": "/7/old"},
    "columns": {"value": "/age/8", "missing": "/age", "unknown": "/old"},
    "split": {"value": "/data/1/1", "missing": "/columns/age", "unknown": "/columns/1"},
    "table": {"value": "/data/1/age", "missing": "/data/0/age", "unknown": "/data/0/old"},
    "values": {"value": "/1/1"},
}


@pytest.mark.parametrize("orient", ORIENTS)
def test_what_pandas_writes_is_read_and_errors_point_into_it(orient: Any) -> None:
    text = FRAME.to_json(orient=orient)
    rows = read_rows(json.loads(text))
    assert num_rows(rows.values) == 2
    read = rows.decode(FERRY)
    assert read["deck"].tolist() == ["A", "B"]
    np.testing.assert_array_equal(read["age"], [np.nan, 3.0])
    wrong = {"value": text.replace("3.0", '"x"')}
    if orient != "values":
        wrong["missing"] = wrong["unknown"] = FRAME.rename(columns={"age": "old"}).to_json(
            orient=orient
        )
    for kind, sent in wrong.items():
        with pytest.raises(Invalid) as caught:
            read_rows(json.loads(sent)).decode(FERRY)
        assert f"/inputs{ORIENTS[orient][kind]}" in dict(caught.value.errors)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_float32_is_the_last_number_taken(sign: int) -> None:
    largest = sign * float(np.finfo(np.float32).max)
    assert decode([[largest]], features(a="number"))["a"][0] == largest
    for beyond in (largest * 1.0000001, sign * 10**39, sign * 10**400):
        assert error([[None], [beyond]], features(a="number")) == "/inputs/1/0"


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-31T08:00:00Z", "2026-01-31T08:00"),
        ("2026-01-31t08:00:00.25z", "2026-01-31T08:00:00.250"),
        ("2026-01-31 08:00:00.123456789+02:00", "2026-01-31T06:00:00.123456"),
        ("2026-01-31T08:00+0530", "2026-01-31T02:30"),
        ("2026-01-31T08:00-02", "2026-01-31T10:00"),
        ("2026-01-31T08:00", "2026-01-31T08:00"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01", "2026-01-01"),
    ],
)
def test_times_are_read_as_the_data_sets_are(text: str, utc: str) -> None:
    assert decode([[text]], features(a="datetime"))["a"][0] == np.datetime64(utc)


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13-01", "20260131", "2026-W05-6", "0001-01-01T00:00+01:00", "now"]
)
def test_other_texts_are_no_times(text: str) -> None:
    assert error([[text]], features(a="datetime")) == "/inputs/0/0"
