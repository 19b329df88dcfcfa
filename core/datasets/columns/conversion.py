"""Convert canonical columns to NumPy and to JSON."""

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import booleans, tensors
from core.datasets.columns.place import Column
from core.datasets.columns.strings import is_string
from core.datasets.columns.times import LOCAL_MICROSECONDS


def to_numpy(column: Column, type_: str) -> np.ndarray:
    """A copy of a column, in the convention of `models.features.columns.Columns`."""
    if type_ == "tensor":
        return tensors.to_numpy(column)
    if type_ in ("category", "text"):
        return _strings(column, missing="" if type_ == "text" else None)
    if type_ == "datetime":
        return np.array(column.cast(LOCAL_MICROSECONDS).to_numpy(), "datetime64[us]")
    if type_ == "boolean":
        if is_string(column.type):
            return booleans.to_bits(column)
        column = column.cast(pa.uint8())
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def to_json(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as JSON values: times in RFC 3339, tensors as nested lists, None if missing."""
    columns = {name: _json_values(table.column(name)) for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _strings(column: Column, missing: str | None) -> np.ndarray:
    values = np.empty(len(column), object)
    values[:] = [missing if value is None else value for value in column.to_pylist()]
    return values


def _json_values(column: Column) -> list[Any]:
    if tensors.is_fixed_shape(column.type):
        return list(tensors.to_numpy(column).tolist())
    return [_rfc3339(v) if isinstance(v, datetime) else v for v in column.to_pylist()]


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat().removesuffix("+00:00") + "Z"
