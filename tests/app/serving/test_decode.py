"""Rows of requests: read exactly, as the training files were, with pointers to what is wrong."""

import json
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest

from app.serving.json_pieces import PIECE_VALUES, in_pieces
from core.exceptions import Invalid
from core.inputs.records import decode, num_rows, read_rows
from core.inputs.sentinels import with_sentinels, without_sentinels
from core.inputs.values import BLOCK_VALUES
from models.features.columns import ColumnReading, InputColumn, names_unread, with_readings

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


READINGS = (
    ColumnReading(name="amount", type="number", missing=("-",)),
    ColumnReading(name="price", type="number", format="1.234,56 €"),
    ColumnReading(name="day", type="datetime", format="%d.%m.%Y"),
    ColumnReading(name="smoker", type="boolean", format="yes/no"),
    ColumnReading(name="colour", type="category"),
    ColumnReading(name="code", type="category", format="exact"),
    ColumnReading(name="plain", type="number"),
    ColumnReading(name="id", type="category", use=False),
    ColumnReading(name="note", type="text"),
)
LEVELS = {"colour": ("Red", "blue"), "code": ("a", "A")}
COLUMNS = with_readings(
    [
        InputColumn(name=one.name, type=one.type)
        for one in READINGS
        if one.use and one.type != "text"
    ],
    READINGS,
    LEVELS,
)
UNREAD = names_unread(READINGS, [column.name for column in COLUMNS])
TEXTS: dict[str, Any] = {
    "amount": [" 7 ", "-", "2.5", None],
    "price": ["1.234,56 €", "12,5", "", None],
    "day": ["31.12.2024", "2024-12-30", "", None],
    "smoker": ["Yes", "no ", None, None],
    "colour": [" red", "BLUE", "green", ""],
    "code": ["a", "A", None, "b"],
    "plain": ["1.5", 2, "n/a", "4"],
}
VALUES: dict[str, Any] = {
    "amount": [7, np.nan, 2.5, np.nan],
    "price": [1234.56, 12.5, np.nan, np.nan],
    "day": np.array(["2024-12-31", "2024-12-30", "NaT", "NaT"], "datetime64[us]"),
    "smoker": [1, 0, np.nan, np.nan],
    "colour": ["Red", "blue", "green", None],
    "code": ["a", "A", None, "b"],
    "plain": [1.5, 2, np.nan, 4],
}


def check(columns: Any) -> None:
    assert columns.keys() == VALUES.keys()
    for name, expected in VALUES.items():
        np.testing.assert_array_equal(columns[name], expected, err_msg=name)


def test_json_takes_what_the_training_file_had() -> None:
    records = [dict(zip(TEXTS, row, strict=True)) for row in zip(*TEXTS.values(), strict=True)]
    check(decode(TEXTS, COLUMNS))
    check(decode(records, COLUMNS))
    check(decode([list(record.values()) for record in records], COLUMNS))


def test_columns_that_the_training_left_out_may_be_there() -> None:
    rows = {**TEXTS, "id": [1, 2, 3, 4], "note": ["a", "b", "c", "d"]}
    check(decode(rows, COLUMNS, UNREAD))
    with pytest.raises(Invalid, match="not a feature"):
        decode({**rows, "nope": [1, 2, 3, 4]}, COLUMNS, UNREAD)


def test_days_that_stand_for_none_and_numbers_that_count_time() -> None:
    counted = ColumnReading(name="t", type="datetime", format="unix_ms")
    ending = ColumnReading(
        name="end", type="datetime", format="%d.%m.%Y", missing=("9999-12-31", "open")
    )
    columns = [InputColumn(name=one.name, type=one.type, reading=one) for one in (counted, ending)]
    ends = ["31.12.9999", "9999-12-31T23:59:59Z", "open", "2024-01-02"]
    read = decode(
        {"t": [1_709_251_200_000, 1_709_251_200_000.0, None, "2024-03-01"], "end": ends}, columns
    )
    moment = "2024-03-01"
    expected = {"t": [moment, moment, "NaT", moment], "end": ["NaT", "NaT", "NaT", "2024-01-02"]}
    for name, values in expected.items():
        np.testing.assert_array_equal(read[name], np.array(values, "datetime64[us]"))
    found, notes = without_sentinels(
        decode({"t": [None], "end": ends[:1]}, with_sentinels(columns)), columns
    )
    assert np.isnat(found["end"]).all()
    assert "9999-12-31 in 1 row" in notes[0]


RANDOM = np.random.default_rng(0)
LARGE = PIECE_VALUES + 7


@pytest.mark.parametrize(
    "value",
    [
        RANDOM.normal(size=3 * LARGE),
        RANDOM.normal(size=(5, LARGE)).astype(np.float32),
        RANDOM.normal(size=(LARGE, 3)),
        RANDOM.normal(size=(2, 3, LARGE)),
        RANDOM.integers(-9, 9, size=(LARGE, 2)),
        RANDOM.random(size=LARGE) < 0.5,
        np.where(RANDOM.random(size=LARGE) < 0.1, np.nan, 1.0),
        np.zeros((LARGE, 0)),
        np.arange(3),
        {"a": {"b": RANDOM.normal(size=LARGE)}, "c": [np.ones(LARGE), "text", None], "d": 1.5},
        [1.0] * 2000,
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "shape", "")),
)
def test_pieces_are_the_same_json(value: Any) -> None:
    option = orjson.OPT_SERIALIZE_NUMPY
    assert orjson.dumps(in_pieces(value), option=option) == orjson.dumps(value, option=option)
