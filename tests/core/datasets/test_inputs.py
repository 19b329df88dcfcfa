"""What a model needs of a data set: every column, of the type and shape it was trained on."""

import numpy as np
import pytest

from core.datasets.inputs import check_inputs, input_types, target_type, to_inputs
from core.exceptions import Invalid
from models.features.columns import ColumnProfile, InputColumn
from models.features.readings import spellings

NEEDED = [
    InputColumn(name="x", type="number"),
    InputColumn(name="image", type="tensor", shape=(2, 3)),
]
X = ColumnProfile(name="x", type="number")
IMAGE = ColumnProfile(name="image", type="tensor", shape=(2, 3))


def test_more_columns_in_any_order_are_fine() -> None:
    check_inputs(NEEDED, [ColumnProfile(name="y", type="text"), IMAGE, X])


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


def test_columns_that_look_otherwise_are_read_as_the_model_needs_them() -> None:
    needed = [
        InputColumn(name="grade", type="category", spellings=spellings(["1", "2", "none"])),
        InputColumn(name="seen", type="category", spellings=spellings(["TRUE", "maybe"])),
        InputColumn(name="colour", type="category", spellings=spellings(["Red", "blue"])),
        InputColumn(name="empty", type="datetime"),
        InputColumn(name="note", type="text"),
        InputColumn(name="amount", type="number"),
        InputColumn(name="ends", type="category"),
    ]
    stored = {
        "grade": "number",
        "seen": "boolean",
        "colour": "category",
        "empty": "number",
        "note": "number",
        "amount": "category",
        "ends": "text",
    }
    given = {
        "grade": np.array([1.0, np.nan]),
        "seen": np.array([1.0, 0.0]),
        "colour": np.array(["RED ", None], object),
        "empty": np.array([np.nan, np.nan]),
        "note": np.array([np.nan, np.nan]),
        "amount": np.array(["1.5", "-"], object),
        "ends": np.array(["well", ""], object),
        "target": np.array([3.0, 4.0]),
    }
    profiles = [
        ColumnProfile(name=name, type=type_, levels=("1.5", "-") if name == "amount" else None)
        for name, type_ in stored.items()
    ]
    check_inputs(needed, profiles)
    made = to_inputs(given, stored, needed)
    assert made["grade"].tolist() == ["1", None]
    assert made["seen"].tolist() == ["TRUE", "false"]
    assert made["colour"].tolist() == ["Red", None]
    assert np.isnat(made["empty"]).all()
    assert made["note"].tolist() == ["", ""]
    np.testing.assert_array_equal(made["amount"], [1.5, np.nan])
    assert made["ends"].tolist() == ["well", None]
    assert made["target"].tolist() == [3, 4]


def test_what_cannot_be_read_says_how_to_upload_it() -> None:
    words = ColumnProfile(name="x", type="category", levels=("1", "many"))
    with pytest.raises(Invalid, match="`like`"):
        check_inputs(NEEDED[:1], [words])
    with pytest.raises(Invalid, match=r"row 1 .* must be a number"):
        to_inputs({"x": np.array(["1", "many"], object)}, {"x": "category"}, NEEDED[:1])
