"""The canonical form of a data set: an Arrow table whose columns have one of these types.

    number    an integer or float type; null is a missing value, NaN becomes null
    boolean   bool
    datetime  timestamp[us, UTC]
    category  large_string; by its values, `core.datasets.profiles` may call it `text`
    tensor    fixed_shape_tensor of a number type, without missing values

Decimals become floats, and times of day become strings. Dates, and times without a zone, are UTC.
"""

import pyarrow as pa

from core.datasets.columns import numbers, strings, tensors, times
from core.datasets.columns.place import Column, Place, check_names, escape
from core.exceptions import Invalid

__all__ = [
    "Column",
    "UnsupportedType",
    "canonical",
    "check_names",
    "check_types",
    "escape",
    "is_supported",
]


class UnsupportedType(Invalid):
    """A column has a type that data sets do not have."""


def canonical(table: pa.Table, pointer: str = "/columns") -> pa.Table:
    """The table in canonical form.

    Args:
        pointer: JSON pointer of the columns in the caller's document, for errors.

    Raises:
        Invalid: a name or value is not supported; the message names the column and the row.
    """
    check_names(table.column_names, pointer)
    check_types(table.schema, pointer)
    if table.num_rows == 0:
        raise Invalid([(pointer, "there are no rows: give at least one")])
    names = table.column_names
    return pa.table({n: _canonical(table.column(n), Place(n, pointer)) for n in names})


def check_types(schema: pa.Schema, pointer: str = "/columns") -> None:
    """Raise `UnsupportedType` for types that are not supported."""
    for field in schema:
        if not is_supported(field.type):
            invalid = Place(field.name, pointer).invalid(
                f"has the type {field.type}, which is not supported: give numbers, booleans, "
                "strings, times or fixed-size lists of numbers"
            )
            raise UnsupportedType(invalid.errors)


def is_supported(type_: pa.DataType) -> bool:
    """Whether `canonical` knows what to do with the type."""
    return (
        numbers.is_number(type_)
        or strings.is_string(type_)
        or times.is_time(type_)
        or tensors.is_tensor(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_null(type_)
    )


def _canonical(column: Column, place: Place) -> Column:
    type_ = column.type
    if tensors.is_tensor(type_):
        return tensors.checked(column, place)
    if numbers.is_number(type_):
        return numbers.checked(column, place)
    if times.is_time(type_):
        return times.to_utc(column, place)
    if strings.is_string(type_):
        return times.parse(column.cast(pa.large_string()), place)
    return column.cast(pa.float64()) if pa.types.is_null(type_) else column
