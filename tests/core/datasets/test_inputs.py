"""What a model needs of a data set: every column, of the type and shape it was trained on."""

from typing import Any

import numpy as np
import pytest

from core.datasets.inputs import check_inputs, input_types, target_type, to_inputs
from core.exceptions import Invalid
from models.features.columns import ColumnProfile, InputColumn, spellings

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
