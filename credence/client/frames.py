"""Whatever has columns becomes an Arrow table, and arrays become again what came in.

    pandas, polars, pyarrow      the same kind of frame (narwhals knows them; none is imported here)
    a dict of arrays             a dict of arrays; one of more axes is a column of tensors
    a matrix                     a dict of arrays; its columns are named by their place
    a list of records            a list of records

NaN is a missing value where there is no other one: in pandas, numpy and records.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from credence.types import Feature

ARROW = "application/vnd.apache.arrow.stream"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Frame:
    """Columns, and how to give arrays the form in which these came."""

    table: pa.Table
    restore: Callable[[Arrays], Any]


def read_frame(data: Any, names: Sequence[str] | None = None) -> Frame:
    """Anything that has columns.

    Args:
        names: of a matrix's columns; x0, x1, … by default.

    Raises:
        TypeError, ValueError: naming what cannot be read.
    """
    match data:
        case np.ndarray():
            return Frame(_table(_matrix_columns(data, names)), dict)
        case Mapping():
            return Frame(_table(data), dict)
        case [Mapping(), *_]:
            return Frame(_table(_record_columns(data)), _records)
        case pa.RecordBatch():
            return read_frame(pa.Table.from_batches([data]))
        case _:
            return _native(data)


def select(table: pa.Table, features: Iterable[Feature]) -> pa.Table:
    """The columns of these features alone, categories as text.

    Raises:
        ValueError: naming those that are not there.
    """
    wanted = {feature["name"]: feature["type"] for feature in features}
    if missing := [name for name in wanted if name not in table.column_names]:
        there = ", ".join(table.column_names)
        raise ValueError(f"no column {', '.join(map(repr, missing))}: there are {there}")
    columns = {name: _typed(table.column(name), type_) for name, type_ in wanted.items()}
    return pa.table(columns)


def to_stream(table: pa.Table) -> bytes:
    """A table in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_stream(body: bytes) -> pa.Table:
    """The table of a stream."""
    return pa.ipc.open_stream(body).read_all()


def _native(data: Any) -> Frame:
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        known = (
            "a frame of pandas, polars or pyarrow, a dict of arrays, a matrix, a list of records"
        )
        raise TypeError(f"{type(data).__name__} has no columns: give {known}")
    index = nw.maybe_get_index(frame)

    def restore(arrays: Arrays) -> Any:
        made: Any = nw.from_dict(arrays, backend=frame.implementation).to_native()
        if index is not None and len(index) == len(made):
            made.index = index
        return made

    return Frame(frame.to_arrow().select(frame.columns).replace_schema_metadata(None), restore)


def _table(columns: Mapping[str, Any]) -> pa.Table:
    """Raises `ValueError` for columns of unlike lengths or values of unlike types, by name."""
    arrays = {name: _array(name, values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of unlike lengths: {lengths}")
    return pa.table(arrays)


def _array(name: str, values: Any) -> "pa.Array[Any]":
    array = np.asarray(values)
    if array.ndim > 1:
        tensors: Any = pa.FixedShapeTensorArray
        return tensors.from_numpy_ndarray(np.ascontiguousarray(array))
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"column {name!r}: {error}") from error


def _matrix_columns(matrix: np.ndarray, names: Sequence[str] | None) -> dict[str, Any]:
    if matrix.ndim != 2:
        raise ValueError(f"an array of shape {list(matrix.shape)}: give a matrix, rows by columns")
    names = names or [f"x{index}" for index in range(matrix.shape[1])]
    if len(names) != matrix.shape[1]:
        wanted = ", ".join(names)
        raise ValueError(f"{matrix.shape[1]} columns: the model has {len(names)} ({wanted})")
    return dict(zip(names, matrix.T, strict=True))


def _record_columns(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def _records(arrays: Arrays) -> list[dict[str, Any]]:
    columns = [values.tolist() for values in arrays.values()]
    return [dict(zip(arrays, row, strict=True)) for row in zip(*columns, strict=True)]


def _typed(column: Any, type_: str) -> Any:
    """Codes of categories may be numbers in a frame; they are read as text from a file."""
    is_code = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return column.cast(pa.string()) if type_ == "category" and is_code else column
