"""Arrays and frames as the columns that models read, with the service's own encoders.

Arrays hold numbers. A frame's columns keep their types: categories stay categories, even if they
look like times. Strings, booleans and times are read as in an uploaded file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from core.datasets.columns import Column, canonical
from core.datasets.columns.conversion import to_numpy
from core.datasets.columns.strings import is_string
from core.datasets.files.names import unused
from core.datasets.profiles import profile
from models.features.columns import Columns, InputColumn, level_text


def with_plain_names(data: Any) -> Any:
    """A frame of pandas or Arrow with names that are strings and differ; other data as they are.

    The integer 7 becomes "7", and a second "x" becomes "x_2", as in an uploaded file. Sparse
    columns of pandas become dense.
    """
    if isinstance(data, pa.Table):
        return data.rename_columns(unique_names(data.column_names))
    if not (hasattr(data, "set_axis") and hasattr(data, "columns")):
        return data
    names = unique_names(data.columns)
    if names != list(data.columns):
        data = data.set_axis(names, axis=1)
    sparse = [n for n, type_ in data.dtypes.items() if type(type_).__name__ == "SparseDtype"]
    return data.assign(**{n: data[n].sparse.to_dense() for n in sparse}) if sparse else data


def unique_names(names: Iterable[Any]) -> list[str]:
    """The names as strings; one that is there already gets a number."""
    texts = list(map(str, names))
    found, taken = dict[str, None](), set(texts)
    for text in texts:
        name = unused(text, taken) if text in found else text
        found[name] = None
        taken.add(name)
    return list(found)


def to_arrow(frame: Any) -> pa.Table | None:
    """A pandas, Polars or Arrow table as Arrow; None for other data."""
    native = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(native, nw.DataFrame):
        return None
    return native.to_arrow().select(range(native.shape[1]))  # narwhals appends pandas' index


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
    rest = {name: column for name, column in columns.items() if name not in levels}
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
