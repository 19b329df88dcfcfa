"""Canonical columns out: to NumPy for models, to JSON for people."""

from typing import Any

import numpy as np
import pyarrow as pa

from core.columns import UTC_MICROSECONDS


def to_numpy(column: pa.ChunkedArray, type_: str) -> np.ndarray:
    """A column as `models.features.Columns` wants it for its type."""
    if type_ == "tensor":
        return _tensor(column)
    if type_ in ("category", "text"):
        return _strings(column, missing="" if type_ == "text" else None)
    if type_ == "datetime":
        return column.cast(pa.timestamp("us")).to_numpy().astype("datetime64[us]")
    if type_ == "boolean":
        column = column.cast(pa.uint8())
    return column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64, copy=False)


def to_json(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as dictionaries of JSON values."""
    columns = {name: _json_values(table.column(name)) for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _tensor(column: pa.ChunkedArray) -> np.ndarray:
    parts = [chunk.to_numpy_ndarray() for chunk in column.chunks]
    return np.concatenate(parts)


def _strings(column: pa.ChunkedArray, missing: str | None) -> np.ndarray:
    values = np.empty(len(column), object)
    values[:] = column.fill_null(missing).to_pylist() if missing is not None else column.to_pylist()
    return values


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    if isinstance(column.type, pa.FixedShapeTensorType):
        return list(_tensor(column).tolist()) if len(column) else []
    if column.type == UTC_MICROSECONDS:
        return [None if v is None else _rfc3339(v) for v in column.to_pylist()]
    return list(column.to_pylist())


def _rfc3339(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")
