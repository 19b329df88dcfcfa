"""Inline columns, strings that are times, and profiles compared with NumPy."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.columns import canonical
from core.datasets.columns.conversion import to_json, to_numpy
from core.datasets.formats import inline
from core.datasets.profiles import profile
from core.exceptions import Invalid


def inline_table(**columns: Any) -> pa.Table:
    return canonical(inline.read(columns), inline.POINTER)


@pytest.mark.parametrize(
    ("columns", "path", "message"),
    [
        ({}, "/data/columns", "there are no columns"),
        ({"x": []}, "/data/columns", "there are no rows"),
        ({"x": 3}, "/data/columns/x", "is not a list"),
        ({"x": [1], "y/z": [1, 2]}, "/data/columns/y~1z", "has 2 values and 'x' has 1"),
        ({"x": [1, "a"]}, "/data/columns/x/1", "is of type string where the values before are num"),
        ({"x": [1, {}]}, "/data/columns/x/1", "is of type object"),
        ({"x": [[1], [1, 2]]}, "/data/columns/x", "of one shape in every row"),
        ({"x": [1.0, float("nan")]}, "/data/columns/x/1", "is NaN: give null"),
        ({"x": [1.0, float("inf")]}, "/data/columns/x/1", "is infinite or outside float32"),
        ({"": [1]}, "/data/columns/0", "is empty"),
        ({"a\ud800": [1]}, "/data/columns/0", r"control character U\+D800"),
    ],
)
def test_wrong_json_columns_are_refused_by_pointer(
    columns: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        inline_table(**columns)
    assert refused.value.errors[0][0] == path


@pytest.mark.parametrize(
    ("strings", "expected"),
    [
        (["1949-01", "1949-12"], ["1949-01-01T00:00:00Z", "1949-12-01T00:00:00Z"]),
        (
            ["2020-01-01T00:30:00+01:00", "2020-01-01T00:30:00.5Z"],
            ["2019-12-31T23:30:00Z", "2020-01-01T00:30:00.500000Z"],
        ),
    ],
)
def test_strings_that_are_all_times_are_times(
    strings: list[str | None], expected: list[str | None]
) -> None:
    assert [row["t"] for row in to_json(inline_table(t=strings))] == expected


def test_arrays_follow_the_convention_of_models() -> None:
    table = inline_table(n=[1, None], s=["a", None], b=[True, None], t=["2020-01-02", None])
    number = to_numpy(table.column("n"), "number")
    assert number.dtype == np.float64
    assert np.array_equal(number, [1.0, np.nan], equal_nan=True)
    assert to_numpy(table.column("s"), "category").tolist() == ["a", None]
    assert to_numpy(table.column("s"), "text").tolist() == ["a", ""]
    boolean = to_numpy(table.column("b"), "boolean")
    assert np.array_equal(boolean, [1.0, np.nan], equal_nan=True)
    times = to_numpy(table.column("t"), "datetime")
    assert times.dtype == np.dtype("datetime64[us]")
    assert str(times[0]) == "2020-01-02T00:00:00.000000"
    assert np.isnat(times[1])


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(1e6, 1e-2, 1000),
        np.array([1e38, -1e38, 3e38]),
        np.array([2**62, 2**62 - 1, 2**62 - 2]),  # their sum is beyond 64 bits
        np.array([2**64 - 1, 2**63], np.uint64),
    ],
)
def test_moments_are_those_of_numpy(values: np.ndarray) -> None:
    column = canonical(pa.table({"x": values})).column("x")
    found, exact = profile("x", column), values.astype(np.float64)
    assert (found.min, found.max) == (exact.min(), exact.max())
    assert found.mean == pytest.approx(exact.mean(), rel=1e-12)
    assert found.std == pytest.approx(exact.std(), rel=1e-6)


def test_prose_is_text() -> None:
    sentences = [f"The weather on day {i} was neither good nor bad." for i in range(150)]
    assert profile("x", inline_table(x=sentences).column("x")).type == "text"
    assert profile("x", inline_table(x=["short", "x" * 257]).column("x")).type == "text"
    assert profile("x", inline_table(x=sentences[:50]).column("x")).type == "category"
    few = inline_table(x=["a", "b"]).column("x")
    assert profile("x", few, is_text=True).type == "text"
