"""`truth` of labelled rows: JSON → the target's values, with a pointer to each that is wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.http.validation import MAX_ERRORS
from app.serving.values import blocks, check_types, read_numbers
from core.exceptions import Invalid
from models.prediction.prediction import ClassName

MAX_CLASSES = 20  # that a message lists
LABEL_TYPES = {str, int, float, bool, type(None)}


def check_length(truth: object, rows: int) -> list[Any]:
    """The labels, one per row; raises `Invalid`."""
    if not isinstance(truth, list):
        raise Invalid([("/truth", "must be a list with the target of each row, or null")])
    if len(truth) != rows:
        message = f"has {len(truth)} values for {rows} rows; null stands for what is not known"
        raise Invalid([("/truth", message)])
    return truth


def read_labels(truth: list[Any], classes: Sequence[ClassName] | None) -> np.ndarray:
    """Numbers with NaN, or classes with None, where nothing is known.

    Raises:
        Invalid: where a value is no finite number, or no class of the model; or if none is known.
    """
    if all(value is None for value in truth):
        raise Invalid([("/truth", "holds null alone: give the target of one row at least")])
    if classes is None:
        return blocks(read_numbers, truth, _place)
    check_types(truth, _place, LABEL_TYPES, "must be a class of the model, or null")
    known = {_key(name): name for name in classes} | {_key(None): None}
    if unknown := [i for i, value in enumerate(truth) if _key(value) not in known]:
        listed = ", ".join(str(name) for name in classes[:MAX_CLASSES])
        more = f" and {len(classes) - MAX_CLASSES} more" if len(classes) > MAX_CLASSES else ""
        message = f"is no class of the model, which has {listed}{more}"
        raise Invalid([(_place(i), message) for i in unknown[:MAX_ERRORS]])
    return np.array([*(known[_key(value)] for value in truth), None], dtype=object)[:-1]


def _place(i: int) -> str:
    return f"/truth/{i}"


def _key(value: ClassName | None) -> tuple[bool, ClassName | None]:
    """To Python true is 1, and to a model it is not."""
    return isinstance(value, bool), value
