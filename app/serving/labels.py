"""`truth` of labelled rows in JSON → values of the target."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.exceptions import Invalid
from core.inputs.values import blocks, check_types, read_numbers, read_values
from core.validation import MAX_ERRORS
from models.features.columns import InputColumn, level_as_trained
from models.features.targets import present
from models.messages import first_of
from models.prediction.prediction import ClassName

MAX_CLASSES = 20  # in a message
LABEL_TYPES = {str, int, float, bool, type(None)}


def check_length(truth: object, rows: int) -> list[Any]:
    """The labels. Raises `Invalid` unless there is one per row."""
    if not isinstance(truth, list):
        raise Invalid([("/truth", "must be a list with the target of each row, or null")])
    if len(truth) != rows:
        message = f"has {len(truth)} values for {rows} rows; give null if one is not known"
        raise Invalid([("/truth", message)])
    return truth


def read_labels(
    truth: list[Any], classes: Sequence[ClassName] | None, column: InputColumn
) -> np.ndarray:
    """Numbers, with NaN for unknown ones; or classes, with None for unknown ones.

    Args:
        column: the target, by which texts are read.

    Raises:
        Invalid: a value is not a finite number, or not a class of the model; or all are unknown.
    """
    if all(value is None for value in truth):
        raise Invalid([("/truth", "has only null: give the target of at least one row")])
    if classes is None:
        return read_values(column, truth, _place)
    truth = [level_as_trained(value, column) for value in truth]
    check_types(truth, _place, LABEL_TYPES, "must be a class of the model, or null")
    known = {_key(name): name for name in classes} | {_key(None): None}
    if unknown := [i for i, value in enumerate(truth) if _key(value) not in known]:
        message = f"is not a class of the model, which has {first_of(classes, MAX_CLASSES)}"
        raise Invalid([(_place(i), message) for i in unknown[:MAX_ERRORS]])
    return np.array([*(known[_key(value)] for value in truth), None], dtype=object)[:-1]


def read_weights(weights: object, known: np.ndarray) -> np.ndarray:
    """The weights of all rows.

    Raises:
        Invalid: there is not one number of 0 or more per row, or the known labels weigh nothing.
    """
    if not isinstance(weights, list) or len(weights) != len(known):
        raise Invalid(
            [("/weights", f"must be a list with one number for each of {len(known)} rows")]
        )
    found = blocks(read_numbers, weights, lambda i: f"/weights/{i}")
    if wrong := np.flatnonzero(~(found >= 0))[:MAX_ERRORS].tolist():
        raise Invalid([(f"/weights/{i}", "must be 0 or more") for i in wrong])
    if not (found[present(known)] > 0).any():
        raise Invalid([("/weights", "are 0 for all rows with a known target")])
    return found


def _place(i: int) -> str:
    return f"/truth/{i}"


def _key(value: ClassName | None) -> tuple[bool, ClassName | None]:
    """A key that differs for True and 1, which are equal in Python."""
    return isinstance(value, bool), value
