"""Arrays and frames as the columns that models read, with the service's own encoders.

Arrays hold numbers. A frame's columns keep their types: categories stay categories, even if they
look like times. Strings, booleans and times are read as in an uploaded file.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from core.datasets.columns import Column, canonical, numbers
from core.datasets.columns.conversion import to_numpy
from core.datasets.columns.strings import is_string
from core.datasets.profiles import profile
from credence.client.arrow import to_stream
from credence.client.frames import read_frame
from models.features.columns import Columns, InputColumn, level_text


def to_arrow(frame: Any) -> pa.Table | None:
    """A pandas, Polars or Arrow table as Arrow; None for other data."""
    native = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(native, nw.DataFrame):
        return None
    try:
        return native.to_arrow().select(range(native.shape[1]))  # narwhals appends pandas' index
    except (pa.ArrowException, NotImplementedError):  # objects: the client knows more of them
        columns = read_frame(frame).columns
        stream = to_stream({name: columns[name] for name in native.columns})
        return pa.ipc.open_stream(stream).read_all()


def name_columns(table: Any, names: Sequence[str]) -> dict[str, Column]:
    """The columns of an Arrow table, or of an array of numbers, under these names."""
    if isinstance(table, pa.Table):
        columns = table.columns
    else:
        columns = [pa.chunked_array([np.ascontiguousarray(column)]) for column in table.T]
    return dict(zip(names, columns, strict=True))


def read(columns: Mapping[str, Column]) -> pa.Table:
    """The columns in the form of a data set.

    Raises:
        Invalid: no model can be trained on a column; the message names it.
    """
    return _canonical(columns, lambda name, column: pa.types.is_dictionary(column.type))


def read_as(columns: Mapping[str, Column], inputs: Sequence[InputColumn]) -> Columns:
    """The columns of a model's inputs, as `predict` takes them.

    Raises:
        Invalid: no model takes the values of a column; the message names it.
        ValueError: a column has another type than in training; the message names it.
    """
    wanted = {column.name: column.type for column in inputs}
    table = _canonical(
        {name: columns[name] for name in wanted},
        lambda name, column: wanted[name] == "category" and _may_be_levels(column),
    )
    return {name: _array(name, table.column(name), type_) for name, type_ in wanted.items()}


def _canonical(columns: Mapping[str, Column], is_levels: Callable[[str, Column], bool]) -> pa.Table:
    """As `core.datasets.columns.canonical`, but categories that look like times stay categories."""
    levels = {n: _levels(column) for n, column in columns.items() if is_levels(n, column)}
    rest = {
        name: numbers.seconds(column) if pa.types.is_duration(column.type) else column
        for name, column in columns.items()
        if name not in levels
    }
    table = canonical(pa.table(rest)) if rest else pa.table({})
    return pa.table({n: levels[n] if n in levels else table.column(n) for n in columns})


def _may_be_levels(column: Column) -> bool:
    return pa.types.is_dictionary(column.type) or is_string(column.type)


def _levels(column: Column) -> Column:
    """Categories as text, numbers as `models.features.columns` writes them."""
    if is_string(column.type):
        return column.cast(pa.large_string())
    texts = [None if value is None else level_text(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _array(name: str, column: Column, type_: str) -> np.ndarray:
    if column.null_count == len(column):
        return _missing(len(column), type_)
    found = profile(name, column).type
    is_text = {found, type_} == {"category", "text"}  # few rows of text look like categories
    if found != type_ and not is_text:
        raise ValueError(f"column {name!r} is of type {found}; the model was trained on a {type_}")
    return to_numpy(column, type_)


def _missing(rows: int, type_: str) -> np.ndarray:
    match type_:
        case "category":
            return np.full(rows, None, object)
        case "text":
            return np.full(rows, "", object)
        case "datetime":
            return np.full(rows, np.datetime64("NaT"), "datetime64[us]")
    return np.full(rows, np.nan)
