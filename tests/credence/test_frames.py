"""Columns in every form, and back in the same form."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from credence.client.frames import from_stream, read_frame, select, to_stream

COLUMNS = {"x": [1.5, None, 3.0], "kind": ["a", "b", None]}
PANDAS = pd.DataFrame(COLUMNS, index=[7, 3, 5])


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
    assert from_stream(to_stream(read_frame(data).table)).to_pydict() == COLUMNS


def test_arrays_come_back_as_what_came_in() -> None:
    arrays = {"mean": np.array([1.0, 2.0, 3.0])}
    frame = read_frame(PANDAS).restore(arrays)
    assert list(frame.index) == [7, 3, 5]
    assert frame["mean"].tolist() == [1.0, 2.0, 3.0]
    assert isinstance(read_frame(pl.DataFrame(COLUMNS)).restore(arrays), pl.DataFrame)
    assert isinstance(read_frame(pa.table(COLUMNS)).restore(arrays), pa.Table)
    assert read_frame([{"x": 1.0}]).restore({"mean": np.array([2.0])}) == [{"mean": 2.0}]
    longer = read_frame(PANDAS).restore({"mean": np.arange(5.0)})  # a forecast of five steps
    assert list(longer.index) == [0, 1, 2, 3, 4]


def test_a_matrix_has_columns_by_their_place() -> None:
    assert read_frame(np.eye(2)).table.to_pydict() == {"x0": [1.0, 0.0], "x1": [0.0, 1.0]}
    assert read_frame(np.eye(2), ["a", "b"]).table.column_names == ["a", "b"]
    with pytest.raises(ValueError, match=r"2 columns: the model has 3 \(a, b, c\)"):
        read_frame(np.eye(2), ["a", "b", "c"])


def test_images_are_tensors() -> None:
    table = read_frame({"image": np.zeros((3, 4, 5), np.float32)}).table
    assert table.schema.field("image").type == pa.fixed_shape_tensor(pa.float32(), [4, 5])


def test_features_are_picked_and_codes_are_text() -> None:
    table = pa.table({"y": [1], "code": [7], "x": [2.0]})
    picked = select(table, [{"name": "x", "type": "number"}, {"name": "code", "type": "category"}])
    assert picked.to_pydict() == {"x": [2.0], "code": ["7"]}
    with pytest.raises(ValueError, match="no column 'z': there are y, code, x"):
        select(table, [{"name": "z", "type": "number"}])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": [1, 2], "y": [1]}, "unlike lengths"),
        ({"x": [1, "a"]}, "column 'x'"),
        (np.zeros(3), r"shape \[3\]: give a matrix"),
    ],
)
def test_what_is_no_table_is_named(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_frame(data)


def test_what_has_no_columns_is_refused() -> None:
    with pytest.raises(TypeError, match="int has no columns: give a frame of pandas"):
        read_frame(3)
