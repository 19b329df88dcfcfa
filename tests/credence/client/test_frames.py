"""Columns in every form, and back in the same form."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from credence.client.arrow import Table, from_stream, to_stream
from credence.client.frames import read_frame, select

COLUMNS = {"x": [1.5, None, 3.0], "kind": ["a", "b", None]}
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


def test_features_are_picked_and_codes_are_text() -> None:
    columns = read_frame(pa.table({"y": [1], "code": [7], "x": [2.0]})).columns
    picked = select(
        columns, [{"name": "x", "type": "number"}, {"name": "code", "type": "category"}]
    )
    assert {name: c.values for name, c in picked.items()} == {"x": [2.0], "code": ["7"]}
    with pytest.raises(ValueError, match="no column 'z'"):
        select(columns, [{"name": "z", "type": "number"}])


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"x": [1, 2], "y": [1]}, ValueError, "differ in length"),
        ({"x": [1, "a"]}, ValueError, "column 'x'"),
        (np.zeros(3), ValueError, r"shape \[3\]"),
        (3, TypeError, "int has no columns"),
    ],
)
def test_what_is_no_table_is_named(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_frame(data)
