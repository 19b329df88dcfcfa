"""Numbers. They must be finite and inside float32, because networks compute in float32."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns.place import Column, Place

FLOAT32_MAX = float(np.finfo(np.float32).max)
TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # of a second, by the unit of durations
OUT_OF_RANGE = (
    f"is infinite or outside float32: give numbers between -{FLOAT32_MAX:.3g} and "
    f"{FLOAT32_MAX:.3g}, or leave it empty"
)


def is_number(type_: pa.DataType) -> bool:
    """Whether the type is integer, float or decimal, of any width."""
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def seconds(spans: Column) -> Column:
    """Time spans as seconds."""
    ticks = spans.cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.divide(ticks, TICKS[spans.type.unit])


def checked(column: Column, place: Place) -> Column:
    """The column with NaN as null. Raises `Invalid` for the first row outside float32."""
    if pa.types.is_integer(column.type):
        return column  # even 64 bits are inside float32's range
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    wrong = pc.greater(pc.abs(column), pa.scalar(FLOAT32_MAX, pa.float64()))
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise place.invalid(OUT_OF_RANGE, row)
    return column
