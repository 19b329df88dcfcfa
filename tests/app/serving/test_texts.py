"""Texts in requests are read as the files of the training data were."""

from typing import Any

import numpy as np
import pytest

from core.exceptions import Invalid
from core.inputs.records import decode
from core.inputs.sentinels import with_sentinels, without_sentinels
from models.features.columns import ColumnReading, InputColumn, names_unread, with_readings

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
