"""Columns in every form, and back in the same form."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from credence.client.arrow import Table, from_stream, to_stream
from credence.client.frames import read_frame

COLUMNS = {"x": [1.5, None, 3.0], "kind": ["a", "b", None]}
TOKYO = datetime(2023, 12, 31, 15, tzinfo=UTC)  # midnight there, as it is sent
PANDAS = pd.DataFrame(COLUMNS, index=[7, 3, 5])


def table_of(data: Any) -> Table:
    """As it comes to the service."""
    return from_stream(to_stream(read_frame(data).columns))


def columns_of(data: Any) -> dict[str, list[Any]]:
    table = table_of(data)
    return {name: table.to_pylist(name) for name in table.column_names}


@pytest.mark.parametrize(
    "data",
    [
        PANDAS,
        PANDAS.assign(kind=PANDAS["kind"].astype("category")),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        {"x": np.array([1.5, np.nan, 3.0]), "kind": COLUMNS["kind"]},
        [{"x": 1.5, "kind": "a"}, {"kind": "b"}, {"x": 3.0}],
    ],
    ids=["pandas", "categories", "polars", "table", "batch", "arrays", "records"],
)
def test_columns_are_the_same_in_every_form(data: Any) -> None:
    assert columns_of(data) == COLUMNS


def test_arrays_come_back_as_what_came_in() -> None:
    means = table_of({"mean": [1.0, 2.0, 3.0]})
    frame = read_frame(PANDAS).restore(means)
    assert list(frame.index) == [7, 3, 5]
    assert frame["mean"].tolist() == [1.0, 2.0, 3.0]
    assert isinstance(read_frame(pl.DataFrame(COLUMNS)).restore(means), pl.DataFrame)
    assert isinstance(read_frame(pa.table(COLUMNS)).restore(means), pa.Table)
    assert read_frame([{"x": 1.0}]).restore(table_of({"mean": [2.0]})) == [{"mean": 2.0}]
    forecast = read_frame(PANDAS).restore(table_of({"mean": np.arange(5.0)}))
    assert list(forecast.index) == [0, 1, 2, 3, 4]  # of more steps than there were rows


def test_a_matrix_has_columns_by_their_place_and_images_are_tensors() -> None:
    assert columns_of(np.eye(2)) == {"x0": [1.0, 0.0], "x1": [0.0, 1.0]}
    assert list(read_frame(np.eye(2), ["a", "b"]).columns) == ["a", "b"]
    with pytest.raises(ValueError, match="a, b, c"):
        read_frame(np.eye(2), ["a", "b", "c"])
    images = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    table = pa.table(table_of({"image": images}))  # type: ignore[arg-type]
    array: Any = table.column("image").combine_chunks()
    assert (array.to_numpy_ndarray() == images).all()
    assert table.schema.field("image").type == pa.fixed_shape_tensor(pa.float32(), [4, 5])


HOURS = pd.to_timedelta(["1h", None])
MONTHS = pd.PeriodIndex(["2024-01", None], freq="M")
FIRST = datetime(2024, 1, 1)  # noqa: DTZ001 - what a time without a zone comes back as


@pytest.mark.parametrize(
    ("values", "sent"),
    [
        (HOURS, [3600.0, None]),
        (pl.Series([timedelta(hours=1), None]), [3600.0, None]),
        (pa.array([timedelta(hours=1), None]), [3600.0, None]),
        (np.array([3600, "NaT"], "timedelta64[s]"), [3600.0, None]),
        ([np.timedelta64(3600 * 10**9, "ns"), None], [3600.0, None]),
        (MONTHS, [FIRST, None]),
        (pd.Series(list(MONTHS), dtype=object), [FIRST, None]),
        ([pd.Timestamp("2024-01-01"), pd.NaT], [FIRST, None]),
        ([np.datetime64("2024-01-01", "ns"), None], [FIRST, None]),
        (pd.array([1, None], dtype="Int64"), [1, None]),
        ([1, pd.NA], [1, None]),
        (pd.array([True, None], dtype="boolean"), [True, None]),
        (pd.array(["a", None], dtype="string"), ["a", None]),
        (pd.arrays.SparseArray([0.0, np.nan]), [0.0, None]),
        (pd.Categorical([1, None]), ["1", None]),
        (pd.cut([0.5, np.nan], [0, 1]), ["(0, 1]", None]),
        ([Decimal("1.5"), None], [1.5, None]),
        ([2**64, None], [2.0**64, None]),
        ([time(8, 30), None], ["08:30:00", None]),
        (pd.to_datetime(["2024-01-01", None]).tz_localize("Asia/Tokyo"), [TOKYO, None]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_every_kind_are_sent(values: Any, sent: list[Any]) -> None:
    match values:
        case list() | np.ndarray():
            data: Any = {"c": values}
        case pl.Series():
            data = pl.DataFrame({"c": values})
        case pa.Array():
            data = pa.table({"c": values})
        case _:
            data = pd.DataFrame({"c": values})
    assert columns_of(data) == {"c": sent}


def test_a_named_index_is_a_column_and_comes_back_as_the_index() -> None:
    days = pd.DatetimeIndex(["2024-01-01", "2024-01-02"], name="day")
    frame = read_frame(pd.DataFrame({"sold": [3, 4]}, index=days))
    assert {name: column.kind for name, column in frame.columns.items()} == {
        "sold": "integer",
        "day": "time",
    }
    assert frame.restore(table_of({"mean": [1.0, 2.0]})).index.equals(days)
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])
    assert columns_of(pd.DataFrame({"x": [1, 2]}, index=levels)) == {"x": [1, 2], "k": ["a", "b"]}
    shadowed = pd.DataFrame({"x": [1, 2]}, index=pd.Index([8, 9], name="x"))
    assert columns_of(shadowed) == {"x": [1, 2]}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, "a"], r"int \(1\), str \('a'\).*frame\['c'\].astype\('string'\)"),
        ([b"a"], r"bytes \(b'a'\).*frame\['c'\].str.decode"),
        ([{"a": 1}], "a column for each key"),
        ([[1, 2], [3]], "lists of numbers of one length"),
        ([["a"], ["b"]], "lists of numbers of one length"),
        ([1 + 2j], "two columns"),
        (pd.interval_range(0, 2), "left"),
        ([pa.scalar(1)], "Int64Scalar"),
    ],
)
def test_a_column_that_cannot_be_sent_is_named(values: Any, says: str) -> None:
    with pytest.raises(TypeError, match=f"column 'c' .*{says}"):
        read_frame(pd.DataFrame({"c": values}))
