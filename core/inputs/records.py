"""`inputs` of a prediction (records, lists or columns) → the columns of the model."""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np

from core.exceptions import Invalid
from core.inputs.values import (
    BLOCK_VALUES,
    FLOAT32_MAX,
    blocks,
    check_types,
    read_numbers,
    read_values,
)
from core.validation import MAX_ERRORS, pointer
from models.features.columns import Columns, InputColumn
from models.features.readings import sentinels_of
from models.plural import first_of

MAX_NAMES = 20  # in a message


def num_rows(inputs: object, where: str = "inputs") -> int:
    """The number of rows in `inputs` of any form. Raises `Invalid` if there are none."""
    match inputs:
        case list() if inputs:
            return len(inputs)
        case dict() if inputs:
            first, values = next(iter(inputs.items()))
            if isinstance(values, list) and values:
                return len(values)
            raise _wrong((where, first), "must be a list with at least one value")
    forms = "a list of records, a list of lists in feature order, or an object of columns"
    raise _wrong(("inputs",), f"must be {forms}, with at least one row")


def decode(
    inputs: list[Any] | dict[str, Any],
    features: Sequence[InputColumn],
    unread: Collection[str] = (),
) -> Columns:
    """Arrays by feature, in the convention of `models.features.columns`.

    Args:
        unread: names of columns that are no features, and may be there all the same.

    Raises:
        Invalid: a feature is missing, a field is not a feature, or a value has a wrong type or
            range. The error has the path and what would be right.
    """
    if _is_language(features):
        return _from_texts(inputs, features[0])
    if isinstance(inputs, dict):
        return decode_columns(inputs, features, unread)
    if isinstance(inputs[0], dict):
        return _from_records(inputs, features, unread)
    return _from_rows(inputs, features)


def refuse_texts(features: Sequence[InputColumn]) -> None:
    """Raise `Invalid` for a language model, for formats that only have columns of features."""
    if _is_language(features):
        message = "is a language model: send its texts as JSON to POST /predict"
        raise Invalid([("/model", message)])


def _is_language(features: Sequence[InputColumn]) -> bool:
    return [feature.continues for feature in features] == [True]


def _from_texts(inputs: Any, feature: InputColumn) -> Columns:
    """The column of a list of strings, which may be empty strings."""
    if not isinstance(inputs, list):
        raise Invalid([("/inputs", "must be a list of strings: this is a language model")])
    check_types(inputs, lambda i: pointer(("inputs", i)), {str}, "must be a string")
    return {feature.name: np.array([*inputs, None], dtype=object)[:-1]}


def decode_columns(
    inputs: object,
    features: Sequence[InputColumn],
    unread: Collection[str] = (),
    where: str = "inputs",
) -> Columns:
    """Arrays by feature, from an object of columns.

    Args:
        unread: as in `decode`.
        where: the name of `inputs` in the request.
    """
    if not isinstance(inputs, dict):
        raise _wrong((where,), "must be an object of columns")
    check_names(inputs, features, (where,), unread=unread)
    expected = num_rows(inputs, where)
    for name, values in inputs.items():
        if not isinstance(values, list):
            raise _wrong((where, name), "must be a list with one value per row")
        if len(values) != expected:
            message = f"has {len(values)} values, but the first column has {expected}"
            raise _wrong((where, name), message)
    plain = _plain_numbers({f.name: inputs[f.name] for f in features if _is_number(f)})
    return {
        f.name: plain[f.name]
        if f.name in plain
        else read_values(f, inputs[f.name], partial(_place_in_column, where, f.name))
        for f in features
    }


def _is_number(feature: InputColumn) -> bool:
    """Whether numbers stand for themselves, and none for a missing value."""
    if feature.type != "number":
        return False
    return feature.reading is None or not sentinels_of(feature.reading)


def _plain_numbers(columns: dict[str, list[Any]]) -> Columns:
    """The columns at once, if they are few numbers, and all of these are right; else none.

    One array takes as long as one column. `read_values` finds the wrong value of others.
    """
    flat = list(chain.from_iterable(columns.values()))
    if not 0 < len(flat) <= BLOCK_VALUES or not set(map(type, flat)) <= {float, int, NoneType}:
        return {}
    try:
        matrix = np.array(flat, np.float64).reshape(len(columns), -1)
    except OverflowError:
        return {}
    outside = matrix.size - np.count_nonzero(np.abs(matrix) <= FLOAT32_MAX)
    if outside and outside != flat.count(None):  # NaN of null alone is right
        return {}
    return dict(zip(columns, matrix, strict=True))


def _from_records(
    inputs: list[Any], features: Sequence[InputColumn], unread: Collection[str]
) -> Columns:
    expected = {feature.name for feature in features}
    for i, record in enumerate(inputs):
        if not isinstance(record, dict):
            raise _wrong(("inputs", i), "must be an object like the first row")
        if record.keys() != expected:
            check_names(record, features, ("inputs", i), unread=unread)
    plain = _plain_numbers(
        {f.name: [record[f.name] for record in inputs] for f in features if _is_number(f)}
    )
    return {
        f.name: plain[f.name]
        if f.name in plain
        else read_values(f, [record[f.name] for record in inputs], partial(_place_in_row, f.name))
        for f in features
    }


def _from_rows(inputs: list[Any], features: Sequence[InputColumn]) -> Columns:
    for i, row in enumerate(inputs):
        if not isinstance(row, list):
            raise _wrong(("inputs", i), "must be an object, or a list in feature order")
        if len(row) != len(features):
            message = f"has {len(row)} values for {len(features)} features: {listed(features)}"
            raise _wrong(("inputs", i), message)
    if all(feature.type == "number" and feature.reading is None for feature in features):
        return _from_matrix(inputs, features)
    return {
        f.name: read_values(f, [row[j] for row in inputs], partial(_place_in_row, j))
        for j, f in enumerate(features)
    }


def _from_matrix(inputs: list[list[Any]], features: Sequence[InputColumn]) -> Columns:
    """Columns of numbers, read row by row: a thousand columns then need no thousand passes."""
    width = len(features)
    matrix = blocks(
        lambda rows, place: read_numbers(
            list(chain.from_iterable(rows)), lambda i: f"{place(i // width)}/{i % width}"
        ).reshape(-1, width),
        inputs,
        lambda row: pointer(("inputs", row)),
        values_per_row=width,
    )
    return {feature.name: matrix[:, j] for j, feature in enumerate(features)}


def check_names(
    given: Collection[str],
    features: Sequence[InputColumn],
    where: tuple[int | str, ...],
    required: str = "required; null stands for a missing value",
    unread: Collection[str] = (),
) -> None:
    """Raise `Invalid` with every feature that is missing and every name that is not a feature.

    Args:
        required: the message for a missing feature.
        unread: other names that are allowed.
    """
    known, present = {feature.name for feature in features}.union(unread), set(given)
    missing = [feature.name for feature in features if feature.name not in present]
    unknown = [name for name in given if name not in known]
    no_feature = f"not a feature; the model has {listed(features)}"
    errors = [(pointer((*where, name)), required) for name in missing]
    errors += [(pointer((*where, name)), no_feature) for name in unknown]
    if errors:
        raise Invalid(errors[:MAX_ERRORS])


def _place_in_column(where: str, name: str, row: int) -> str:
    return pointer((where, name, row))


def _place_in_row(key: int | str, row: int) -> str:
    return pointer(("inputs", row, key))


def listed(features: Sequence[InputColumn]) -> str:
    """The first names, and the number of other names."""
    return first_of([feature.name for feature in features], MAX_NAMES)


def _wrong(where: tuple[int | str, ...], message: str) -> Invalid:
    return Invalid([(pointer(where), message)])
