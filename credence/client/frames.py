"""Data with columns → Arrow columns, and a prediction's columns → the same form of data.

    pandas, polars, pyarrow      the same kind of frame (narwhals reads them; none is imported here)
    a dict of arrays             a dict of arrays; an array with more axes is a column of tensors
    a matrix                     a dict of arrays; its columns get the features' names in order
    a list of records            a list of records

NaN is a missing value, except in polars and pyarrow, which have null.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import narwhals as nw

from credence.client.arrow import Column, Kind, Table, numpy
from credence.types import Feature

KINDS: dict[Kind, type | tuple[type, ...]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float, Decimal),
    "text": str,
    "time": date,
}


def _lists(table: Table) -> dict[str, list[Any]]:
    return {name: table.to_pylist(name) for name in table.column_names}


@dataclass(frozen=True)
class Frame:
    """Columns; `restore` gives a result the form that the data had."""

    columns: Mapping[str, Column]
    restore: Callable[[Table], Any] = _lists

    @property
    def num_rows(self) -> int:
        """The length of each column."""
        return next((len(column.values) for column in self.columns.values()), 0)


def read_frame(data: Any, names: Sequence[str] | None = None) -> Frame:
    """Read anything that has columns.

    Args:
        names: the names of a matrix's columns; by default x0, x1, ….

    Raises:
        TypeError, ValueError: the data cannot be read; the message says which part.
    """
    if _is_array(data):
        return Frame(_columns(_matrix_columns(data, names)), _arrays)
    match data:
        case Frame():
            return data
        case Mapping():
            return Frame(_columns(data), _arrays if any(map(_is_array, data.values())) else _lists)
        case [Mapping(), *_]:
            return Frame(_columns(_record_columns(data)), _records)
        case _:
            return _read_native(data)


def select(columns: Mapping[str, Column], features: Iterable[Feature]) -> dict[str, Column]:
    """Only the columns of these features, with categories as text.

    Raises:
        ValueError: features have no column; the message names them.
    """
    wanted = {feature["name"]: feature["type"] for feature in features}
    if missing := [name for name in wanted if name not in columns]:
        there = ", ".join(columns)
        raise ValueError(f"no column {', '.join(map(repr, missing))}: there are {there}")
    picked = {name: columns[name] for name in wanted}
    codes = {
        name: _as_text(column)
        for name, column in picked.items()
        if wanted[name] == "category" and column.kind in ("integer", "boolean")
    }
    return picked | codes


def _read_native(data: Any) -> Frame:
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        if hasattr(data, "__arrow_c_stream__") and "pyarrow" in sys.modules:
            return _read_native(sys.modules["pyarrow"].table(data))
        known = (
            "a frame of pandas, polars or pyarrow, a dict of arrays, a matrix, a list of records"
        )
        raise TypeError(f"{type(data).__name__} has no columns: give {known}")
    index = nw.maybe_get_index(frame)

    def restore(table: Table) -> Any:
        made: Any = nw.from_dict(_lists(table), backend=frame.implementation).to_native()
        if index is not None and len(index) == len(made):
            made.index = index
        return made

    return Frame({name: _read_series(name, frame[name]) for name in frame.columns}, restore)


def _read_series(name: str, series: nw.Series[Any]) -> Column:
    """A frame's column; one of numbers stays numeric even if all its values are missing."""
    if hasattr(getattr(series.to_native(), "type", None), "shape"):  # pyarrow's tensors
        return Column("tensor", series.to_native().combine_chunks().to_numpy_ndarray())
    values = series.to_list()
    if series.is_null().any():
        values = [
            None if missing else value
            for value, missing in zip(values, series.is_null().to_list(), strict=True)
        ]
    column = _column(name, values)
    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        return _as_text(column)
    if column.kind == "null" and series.dtype.is_numeric():
        return Column("number", values)
    return column


def _columns(columns: Mapping[str, Any]) -> dict[str, Column]:
    """Raises ValueError if columns differ in length, or the values of one in type."""
    read = {name: _column(name, _without_nan(values)) for name, values in columns.items()}
    lengths = {name: len(column.values) for name, column in read.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns differ in length: {lengths}")
    return read


def _without_nan(values: Any) -> Any:
    """A list with None for NaN; an array with more axes as it is."""
    if _is_array(values):
        if values.ndim > 1:
            return values
        times = values.dtype.kind == "M"  # of any resolution
        values = (values.astype("datetime64[us]") if times else values).tolist()
    return [None if isinstance(v, float) and v != v else v for v in values]  # noqa: PLR0124


def _column(name: str, values: Any) -> Column:
    if _is_array(values):
        return Column("tensor", values)
    types = {type(value) for value in values} - {type(None)}
    if any(type_.__module__ == "numpy" for type_ in types):
        values = [v.item() if hasattr(v, "item") else v for v in values]
        types = {type(value) for value in values} - {type(None)}
    if types and all(issubclass(t, list | tuple) or t.__name__ == "ndarray" for t in types):
        return _tensors(name, values)
    if not types:
        return Column("null", values)
    for kind, known in KINDS.items():
        if all(issubclass(t, known) and (t is not bool or kind == "boolean") for t in types):
            if Decimal in types:
                values = [float(v) if isinstance(v, Decimal) else v for v in values]
            return Column(kind, values)
    names = ", ".join(sorted(type_.__name__ for type_ in types))
    raise ValueError(f"column {name!r}: values of the types {names}; give values of one type")


def _tensors(name: str, values: list[Any]) -> Column:
    try:
        return Column("tensor", numpy().array(values))
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error


def _as_text(column: Column) -> Column:
    """Categories as text, which they are in files; in a frame they may be numbers."""
    if column.kind == "text":
        return column
    texts = [None if v is None else str(v) for v in column.values]
    if column.kind == "boolean":
        texts = [None if v is None else v.lower() for v in texts]
    return Column("text", texts)


def _is_array(data: Any) -> bool:
    """Whether it is a numpy array. Does not import numpy: an array exists only if it is loaded."""
    return "numpy" in sys.modules and isinstance(data, sys.modules["numpy"].ndarray)


def _matrix_columns(matrix: Any, names: Sequence[str] | None) -> dict[str, Any]:
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


def _arrays(table: Table) -> dict[str, Any]:
    return {name: table.to_numpy(name) for name in table.column_names}


def _records(table: Table) -> list[dict[str, Any]]:
    columns = _lists(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
