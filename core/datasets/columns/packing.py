"""The input columns of a prediction as bytes, and back without loss.

The format is Arrow's stream, compressed: it holds arrays and text, never code.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import tensors
from core.datasets.columns.conversion import to_numpy
from models.features.columns import Columns, InputColumn


def pack(columns: Columns, inputs: Sequence[InputColumn]) -> bytes:
    """The named columns as bytes.

    Args:
        columns: arrays in the convention of `models.features.columns`.
    """
    table = pa.table({i.name: _to_arrow(columns[i.name], i.type) for i in inputs})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack(packed: bytes, inputs: Sequence[InputColumn]) -> Columns:
    """The inverse of `pack`, for the same inputs."""
    with pa.ipc.open_stream(packed) as reader:
        table = reader.read_all()
    return {i.name: _to_numpy(table.column(i.name), i.type) for i in inputs}


def _to_arrow(values: np.ndarray, type_: str) -> "pa.Array[Any]":
    """An Arrow array in which NaN stays NaN: null would need a validity bitmap."""
    match type_:
        case "tensor":
            return tensors.from_numpy(values)
        case "category" | "text":
            return pa.array(values.tolist(), pa.large_string())
        case "datetime":
            return pa.array(values, pa.timestamp("us"))
    return pa.array(values, pa.float64())


def _to_numpy(column: Any, type_: str) -> np.ndarray:
    return to_numpy(column, "number" if type_ == "boolean" else type_)
