"""Columns given inside a JSON body: `{"x0": [1.0, null], "city": ["Rome", "Oslo"]}`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import check_names
from core.datasets.columns.place import Place
from core.datasets.columns.tensors import from_numpy
from core.exceptions import Invalid

POINTER = "/data/columns"

JSON_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", list: "list"}


def read(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The table. Null is a missing value; nested lists are tensors.

    Raises:
        Invalid: with the JSON pointer of the wrong value.
    """
    if not isinstance(columns, Mapping):
        raise Invalid([(POINTER, "give an object of lists, one per column")])
    check_names(list(columns), POINTER)
    _check_lengths(columns)
    return pa.table(
        {name: _column(values, Place(name, POINTER)) for name, values in columns.items()}
    )


def _check_lengths(columns: Mapping[str, Sequence[Any]]) -> None:
    first, length = "", -1
    for name, values in columns.items():
        if not isinstance(values, list | tuple):
            raise Place(name, POINTER).invalid(
                "is not a list: give its values, one per row, as in [1.0, null], which "
                "frame.to_dict('list') writes"
            )
        if length < 0:
            first, length = name, len(values)
        if len(values) != length:
            raise Place(name, POINTER).invalid(
                f"has {len(values)} values and {first!r} has {length}: give all the same number"
            )


def _column(values: Sequence[Any], place: Place) -> "pa.Array[Any]":
    kind = _common_type(values, place)
    if kind == "list":
        return _tensor(values, place)
    if kind == "number":
        return _numbers(values, place)
    types = {"boolean": pa.bool_(), "string": pa.large_string(), "null": pa.null()}
    return pa.array(values, types[kind])


def _common_type(values: Sequence[Any], place: Place) -> str:
    """The one JSON type of the values that are not null. Raises `Invalid` if there are more."""
    common = "null"
    for row, value in enumerate(values):
        kind = "null" if value is None else JSON_TYPES.get(type(value), "object")
        if kind in ("null", common):
            continue
        if common != "null" or kind == "object":
            before = f" where the values before are {common}s" if common != "null" else ""
            raise place.invalid(f"is of type {kind}{before}: give values of one simple type", row)
        common = kind
    return common


def _numbers(values: Sequence[Any], place: Place) -> "pa.Array[Any]":
    for row, value in enumerate(values):
        if isinstance(value, float) and math.isnan(value):
            raise place.invalid("is NaN: give null for a missing value", row)
    whole = all(value is None or isinstance(value, int) for value in values)
    try:
        return pa.array(values, pa.int64() if whole else pa.float64())
    except (pa.ArrowInvalid, OverflowError):  # beyond 64 bits
        return pa.array([None if v is None else float(v) for v in values], pa.float64())


def _tensor(values: Sequence[Any], place: Place) -> "pa.Array[Any]":
    try:
        array = np.array(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        raise place.invalid("is a tensor: give lists of numbers of one shape in every row")
    return from_numpy(array)
