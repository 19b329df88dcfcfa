"""Arrow columns → the columns of a model, read as those of the training data were."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import numbers, strings, tensors, times
from core.datasets.columns.conversion import to_numpy
from core.datasets.columns.place import Column, Place
from core.inputs.records import check_names, refuse_texts
from core.inputs.texts import takes_numbers
from core.inputs.values import FLOAT32_MAX, read_values
from core.validation import pointer
from models.features.columns import Columns, InputColumn, without_sentinels

ROWS = "/inputs"
WANTED = {
    "number": "integers, floats, decimals, durations, or strings of numbers",
    "boolean": "booleans, or their words, or 1 and 0",
    "category": "strings, dictionary-encoded or not",
    "datetime": "timestamps, dates or RFC 3339 strings",
    "text": "strings",
    "tensor": "a fixed-shape tensor or a fixed-size list of numbers",
}


def to_columns(
    table: pa.Table, features: Sequence[InputColumn], unread: Collection[str] = ()
) -> Columns:
    """Arrays by feature, in the convention of `models.features.columns`.

    Args:
        unread: names of columns that are no features, and may be there all the same.

    Raises:
        Invalid: a feature is missing, a column is not a feature, or a type or value is wrong. The
            error names the column and, for a value, the row.
    """
    refuse_texts(features)
    check_names(table.column_names, features, ("inputs",), unread=unread)
    return {f.name: _read(f, table.column(f.name), Place(f.name, ROWS)) for f in features}


def _read(feature: InputColumn, column: Column, place: Place) -> np.ndarray:
    type_ = column.type
    match feature.type:
        case "tensor" if tensors.is_tensor(type_):
            return _tensors(column, feature.shape, place)
        case "number" if numbers.is_number(type_) or pa.types.is_duration(type_):
            return without_sentinels(_numbers(column, place), feature.reading)
        case "boolean" if pa.types.is_boolean(type_):
            return to_numpy(column, "boolean")
        case "datetime" if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
            found = to_numpy(times.to_utc(column, place), "datetime")
            found = without_sentinels(found, feature.reading)
            return feature.on_its_clock(found, has_offset=times.has_offset(column))
        case "number" | "boolean" | "category" | "datetime" | "text" if _has_values(type_, feature):
            return _values(feature, column.to_pylist())
    raise place.invalid(f"has the type {type_}: give {WANTED[feature.type]}")


def _has_values(type_: pa.DataType, feature: InputColumn) -> bool:
    """Whether the column is read as one of JSON is: texts, nulls, dates that are numbers, bits."""
    is_bit = feature.type == "boolean" and pa.types.is_integer(type_)
    is_date = numbers.is_number(type_) and takes_numbers(feature)
    return is_bit or is_date or strings.is_string(type_) or pa.types.is_null(type_)


def _values(feature: InputColumn, values: list[Any]) -> np.ndarray:
    """The array of a column, read as a column in JSON."""
    return read_values(feature, values, lambda i: pointer(("inputs", feature.name, i)))


def _numbers(column: Column, place: Place) -> np.ndarray:
    """float64 with NaN for null. A NaN in the request is refused, as in JSON."""
    if pa.types.is_duration(column.type):
        column = numbers.seconds(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = column.to_numpy().astype(np.float64, copy=False)
    wrong = ~(np.abs(values) <= FLOAT32_MAX)
    if column.null_count:
        wrong &= np.asarray(column.is_valid())
    if wrong.any():
        message = "is NaN, infinite or outside float32: give a finite number, or null if missing"
        raise place.invalid(message, int(wrong.argmax()))
    return values


def _tensors(column: Column, shape: tuple[int, ...] | None, place: Place) -> np.ndarray:
    """float32 [rows, …], without missing values."""
    column = tensors.checked(column, place)
    given = tuple(column.type.shape)
    if shape is not None and given != shape:
        raise place.invalid(f"has rows of shape {list(given)}: the model takes {list(shape)}")
    return tensors.to_numpy(column).astype(np.float32, copy=False)
