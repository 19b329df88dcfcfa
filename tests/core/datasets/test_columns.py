"""Columns that a request or a model brings: their types, times, and how they are shown."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.datasets.columns import canonical, shown
from core.datasets.columns.conversion import to_numpy
from core.datasets.columns.shown import MAX_ROW_NUMBERS, cut_rows, shown_rows
from core.datasets.columns.tensors import from_numpy
from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.formats import inline
from core.datasets.inputs import check_inputs, input_types, target_type, to_inputs
from core.datasets.profiles import profile
from core.exceptions import Invalid, TooLarge
from core.inputs.arrow import to_columns
from models.features.columns import ColumnProfile, InputColumn, spellings


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


NEEDED = [
    InputColumn(name="x", type="number"),
    InputColumn(name="image", type="tensor", shape=(2, 3)),
]
X = ColumnProfile(name="x", type="number")
IMAGE = ColumnProfile(name="image", type="tensor", shape=(2, 3))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "lacks the columns x, image"),
        ([X], "lacks the columns image"),
        (
            [ColumnProfile(name="x", type="boolean"), IMAGE],
            "'x' is of type boolean; the model needs one of type number",
        ),
        (
            [X, ColumnProfile(name="image", type="tensor", shape=(3, 2))],
            r"shape \[3, 2\]; the model needs one of type tensor and shape \[2, 3\]",
        ),
    ],
)
def test_what_is_wrong_is_named(columns: list[ColumnProfile], message: str) -> None:
    check_inputs(NEEDED, [ColumnProfile(name="y", type="text"), IMAGE, X])  # in any order
    with pytest.raises(Invalid, match=message):
        check_inputs(NEEDED, columns)


WORDS = ColumnProfile(name="paid", type="boolean", levels=("no", "yes"))
BITS = ColumnProfile(name="paid", type="boolean")


def test_words_of_yes_and_no_are_read_as_a_model_needs_them() -> None:
    for type_ in ("category", "boolean"):
        needed = [InputColumn(name="paid", type=type_)]
        check_inputs(needed, [WORDS])
        assert input_types(needed, [WORDS]) == {"paid": type_}
    with pytest.raises(Invalid, match="the model needs one of type category"):
        check_inputs([InputColumn(name="paid", type="category")], [BITS])


def test_a_target_of_words_keeps_them_unless_the_model_has_booleans() -> None:
    assert target_type(WORDS) == "category"
    assert target_type(WORDS, ("no", "yes")) == "category"
    assert target_type(WORDS, (False, True)) == "boolean"
    assert target_type(BITS) == "boolean"
    assert target_type(X) == "number"


@pytest.mark.parametrize(
    ("type_", "words", "stored", "given", "expected"),
    [
        ("category", ["1", "2", "none"], "number", np.array([1.0, np.nan]), ["1", None]),
        ("category", ["TRUE", "maybe"], "boolean", np.array([1.0, 0.0]), ["TRUE", "false"]),
        ("category", ["Red", "blue"], "category", np.array(["RED ", None]), ["Red", None]),
        ("category", None, "text", np.array(["well", ""], object), ["well", None]),
        ("datetime", None, "number", np.array([np.nan]), ["NaT"]),
        ("text", None, "number", np.array([np.nan]), [""]),
        ("number", None, "category", np.array(["1.5", "-"], object), [1.5, np.nan]),
    ],
)
def test_columns_that_look_otherwise_are_read_as_the_model_needs_them(
    type_: Any, words: list[str] | None, stored: str, given: np.ndarray, expected: list[Any]
) -> None:
    known = {} if words is None else {"spellings": spellings(words)}
    needed = [InputColumn(name="x", type=type_, **known)]
    levels = ("1.5", "-") if type_ == "number" else None
    check_inputs(needed, [ColumnProfile(name="x", type=stored, levels=levels)])
    made = to_inputs({"x": given, "target": np.array([3.0])}, {"x": stored}, needed)
    np.testing.assert_array_equal(made["x"], np.array(expected, made["x"].dtype))
    assert made["target"].tolist() == [3]


def _add(datasets: Datasets, folder: Path, text: str) -> Dataset:
    path = folder / "file.csv"
    path.write_text(text)
    return datasets.add("file", "text/csv", path)[0]


@pytest.mark.parametrize(
    ("time", "has_offset"),
    [
        ("2024-10-27T02:00:00+01:00", True),
        ("2024-10-27 02:00Z", True),
        ("27.10.2024 02:00 +0100", True),
        ("2024-10-27T02:00:00", False),
        ("27.10.2024 02:00", False),
        ("2024-10-27", False),
    ],
)
def test_texts_tell_whether_times_have_an_offset(
    datasets: Datasets, tmp_path: Path, time: str, has_offset: bool
) -> None:
    found = _add(datasets, tmp_path, f"time,y\n{time},1\n{time},2\n")
    assert [(one.type, one.offset) for one in found.readings[:1]] == [("datetime", has_offset)]
    assert datasets.get(found.id).readings == found.readings


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_tells_of_zones(datasets: Datasets, tmp_path: Path, zone: str | None) -> None:
    times = pa.array([datetime(2024, 10, 27, tzinfo=UTC)], pa.timestamp("us", zone))
    pq.write_table(pa.table({"time": times, "y": [1.0]}), tmp_path / "file.parquet")
    found, _ = datasets.add("file", "application/vnd.apache.parquet", tmp_path / "file.parquet")
    assert [one.offset for one in found.readings] == [zone is not None, False]
    assert found.first_line is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x,y\n1,2\n3,4\n", 2),
        ("a title\n\nx,y\n1,2\n3,4\n", 4),
        ("x,y\n1,2\n\n3,4\n", None),
        ('x,y\n"a\nb",2\n3,4\n', None),
    ],
)
def test_the_first_line_is_known_if_each_row_is_one_line(
    datasets: Datasets, tmp_path: Path, text: str, line: int | None
) -> None:
    assert datasets.get(_add(datasets, tmp_path, text).id).first_line == line


@pytest.mark.parametrize("takes_local", [True, False])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_arrow_times_are_on_the_clock_of_the_model(takes_local: bool, zone: str | None) -> None:
    noon = datetime(2024, 7, 1, 12 if zone is None else 10, tzinfo=UTC)  # in Berlin
    table = pa.table({"time": pa.array([noon], pa.timestamp("us", zone))})
    column = InputColumn(
        name="time", type="datetime", zone="Europe/Berlin", takes_local=takes_local
    )
    found = to_columns(table, [column])["time"]
    assert found.astype(str).tolist() == [f"2024-07-01T{12 if takes_local else 10}:00:00.000000"]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_long_texts_say_their_bytes(monkeypatch: pytest.MonkeyPatch, type_: pa.DataType) -> None:
    monkeypatch.setattr(shown, "MAX_ROW_TEXT", 600)
    texts = ["short", None, "", "ä" * 300, "ä" * 301, "x" * 900]
    table = pa.table({"a": pa.array(texts, type_), "b": pa.array(["b"] * 6, type_)})
    told = ["short", None, "", "ä" * 300, "ä" * 300 + "… (602 bytes)", "x" * 300 + "… (900 bytes)"]
    assert [orjson.loads(row)["a"] for row in shown_rows(table)] == told
    assert [row["a"] for row in cut_rows(table)] == told


def test_tensors_of_very_many_numbers_are_refused() -> None:
    table = pa.table({"image": from_numpy(np.zeros((2, MAX_ROW_NUMBERS), np.uint8))})
    assert len(list(shown_rows(table))) == 2
    table = pa.table({"image": from_numpy(np.zeros((2, MAX_ROW_NUMBERS + 1), np.uint8))})
    with pytest.raises(TooLarge, match=f"a row has {MAX_ROW_NUMBERS + 1} numbers"):
        list(shown_rows(table))
