"""Columns given inside a JSON body: `{"x0": [1.0, null], "city": ["Rome", "Oslo"]}`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.columns import check_names, escape
from core.exceptions import Invalid

POINTER = "/data/columns"


def read(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A table of lists of equal length; null is a missing value, nested lists are tensors.

    Raises:
        Invalid: with the JSON pointer of what is wrong.
    """
    if not isinstance(columns, Mapping):
        raise Invalid([(POINTER, "give an object of lists, one per column")])
    check_names(list(columns), POINTER)
    _check_lengths(columns)
    return pa.table({name: _column(name, values) for name, values in columns.items()})


def _check_lengths(columns: Mapping[str, Sequence[Any]]) -> None:
    first, length = "", -1
    for name, values in columns.items():
        if not isinstance(values, list | tuple):
            raise Invalid([(f"{POINTER}/{escape(name)}", "give a list of values, one per row")])
        if length < 0:
            first, length = name, len(values)
        if len(values) != length:
            message = f"has {len(values)} values and {first!r} has {length}: give all the same"
            raise Invalid([(f"{POINTER}/{escape(name)}", message)])


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    kinds = {_kind(value): row for row, value in reversed(list(enumerate(values)))}
    kinds.pop("null", None)
    if kinds.keys() == {"list"}:
        return _tensor(name, values)
    if kinds.keys() <= {"integer", "number"}:
        return _numbers(name, values)
    if len(kinds) == 1 and kinds.keys() <= {"boolean", "string"}:
        return pa.array(values, pa.bool_() if "boolean" in kinds else pa.string())
    row = max(kinds.values())
    message = f"the column mixes {' and '.join(sorted(kinds))}: give values of one type"
    raise Invalid([(f"{POINTER}/{escape(name)}/{row}", message)])


def _kind(value: object) -> str:
    """The JSON type of a value; `bool` before `int`, which it is in Python."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "list"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _numbers(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        whole = all(value is None or type(value) is int for value in values)
        return pa.array(values, pa.int64() if whole else pa.float64())
    except (pa.ArrowInvalid, OverflowError):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())


def _tensor(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        array = np.array(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        message = "nested lists must hold numbers and have the same shape in every row"
        raise Invalid([(f"{POINTER}/{escape(name)}", message)])
    array = array.astype(np.uint8) if array.dtype.kind == "b" else array
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(array))
