"""Data with columns → Arrow columns, and a prediction's columns → the same form of data.

    pandas, polars, pyarrow      the same kind of frame (narwhals reads them; none is imported here)
    a dict of arrays             a dict of arrays; an array with more axes is a column of tensors
    a matrix                     a dict of arrays; its columns get the features' names in order
    a list of records            a list of records

NaN is a missing value, except in polars and pyarrow, which have null. A period is the time at which
it begins, a time span its seconds. Names become texts that differ, as in an uploaded file: `7` is
"7", and a second "x" is "x_2".
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import count
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
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "Period": lambda period: period.to_timestamp(),
    "Timedelta": timedelta.total_seconds,
    "timedelta": timedelta.total_seconds,
    "time": time.isoformat,
}
"""By the name of a value's type, so that pandas is not imported."""

ADVICE: Mapping[str, str] = {
    "bytes": "decode them to text, as frame[{name!r}].str.decode('utf-8') does",
    "complex": "give the real and the imaginary parts as two columns",
    "dict": "give a column for each key",
    "Interval": "give its ends, `left` and `right`, as two columns",
}
READ = "give numbers, texts, booleans, times, or lists of numbers of one length"
ONE_TYPE = (
    "give values of one type: all numbers, or all texts, as frame[{name!r}].astype('string') does"
)
MISSING = ("NAType", "NaTType")  # of pandas
MAX_SHOWN = 40  # characters of a value in a message


class ColumnError(TypeError, ValueError):
    """A column cannot be sent: its values have a wrong type. The message names the column."""


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
            data = dict(zip(unique_names(data), data.values(), strict=True))
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
    given = {name: given_name(name, columns) for name in wanted}
    if missing := [name for name, there in given.items() if there not in columns]:
        there = ", ".join(columns)
        raise ValueError(f"no column {', '.join(map(repr, missing))}: there are {there}")
    picked = {name: columns[there] for name, there in given.items()}
    codes = {
        name: _as_codes(column)
        for name, column in picked.items()
        if wanted[name] == "category" and column.kind in ("integer", "number", "boolean")
    }
    return picked | codes


def given_name(name: str, names: Collection[str]) -> str:
    """The name that a feature has among these.

    If a file has the header `x,x`, the service names its columns x and x_2; pandas, x and x.1.
    """
    if name not in names:
        for here, first, there, other in (("_", 2, ".", 1), (".", 1, "_", 2)):
            stem, _, number = name.rpartition(here)
            if stem in names and number.isdecimal() and int(number) >= first:
                return f"{stem}{there}{int(number) - first + other}"
    return name


def with_plain_columns(data: Any) -> Any:
    """A frame of pandas or Arrow with names that are texts and differ; other data as they are.

    Of pandas, sparse columns become dense, periods the times at which they begin, and categories
    that are intervals or periods texts.
    """
    if hasattr(data, "rename_columns") and hasattr(data, "column_names"):
        return data.rename_columns(unique_names(data.column_names))
    if not (hasattr(data, "set_axis") and hasattr(data, "columns")):
        return data
    names = unique_names(data.columns)
    if names != list(data.columns):
        data = data.set_axis(names, axis=1)
    plain: dict[str, Any] = {}
    for name, dtype in data.dtypes.items():
        if type(dtype).__name__ == "SparseDtype":
            plain[name] = data[name].sparse.to_dense()
        elif type(dtype).__name__ == "PeriodDtype":
            plain[name] = data[name].dt.to_timestamp()
        elif type(getattr(dtype, "categories", None)).__name__ in ("IntervalIndex", "PeriodIndex"):
            plain[name] = data[name].cat.rename_categories(str)
    return data.assign(**plain) if plain else data


def unique_names(names: Iterable[Any]) -> list[str]:
    """The names as texts; one that is there already gets a number, from 2."""
    texts = list(map(str, names))
    found, taken = dict[str, None](), set(texts)
    for text in texts:
        numbered = (f"{text}_{number}" for number in count(2))
        name = next(n for n in numbered if n not in taken) if text in found else text
        found[name] = None
        taken.add(name)
    return list(found)


def _read_native(data: Any) -> Frame:
    plain = with_plain_columns(data)
    given = nw.from_native(plain, allow_series=True, pass_through=True)
    if not isinstance(given, nw.DataFrame):
        is_table = hasattr(data, "__arrow_c_stream__") and not isinstance(given, nw.Series)
        if is_table and not isinstance(given, nw.LazyFrame) and "pyarrow" in sys.modules:
            return _read_native(sys.modules["pyarrow"].table(data))
        match given:
            case nw.Series():
                known = "a frame, as its method to_frame() does"
            case nw.LazyFrame():
                known = "a frame, as its method collect() does"
            case _:
                known = (
                    "a frame of pandas, polars or pyarrow, a dict of arrays, a matrix, a list of "
                    "records"
                )
        raise TypeError(f"{type(data).__name__} has no columns: give {known}")
    index = nw.maybe_get_index(given)
    frame: nw.DataFrame[Any] = nw.from_native(_with_named_index(plain), eager_only=True)

    def restore(table: Table) -> Any:
        made: Any = nw.from_dict(_lists(table), backend=frame.implementation).to_native()
        if index is not None and len(index) == len(made):
            made.index = index
        return made

    return Frame({name: _read_series(name, frame[name]) for name in frame.columns}, restore)


def _with_named_index(data: Any) -> Any:
    """A frame of pandas whose index has a name has a column of this name, as in a Parquet file."""
    index: Any = getattr(data, "index", None)
    if not (hasattr(data, "assign") and hasattr(index, "names")):
        return data
    levels = {
        str(name): index.get_level_values(level)
        for level, name in enumerate(index.names)
        if name is not None and str(name) not in data.columns
    }
    return with_plain_columns(data.assign(**levels)) if levels else data


def _read_series(name: str, series: nw.Series[Any]) -> Column:
    """A frame's column; one of numbers stays numeric even if all its values are missing."""
    type_ = getattr(series.to_native(), "type", None)
    if hasattr(type_, "shape"):  # pyarrow's tensors
        return Column("tensor", series.to_native().combine_chunks().to_numpy_ndarray())
    if getattr(type_, "extension_name", "").startswith("pandas."):  # whose values are numbers
        advice = "give the frame of pandas itself"
        raise ColumnError(f"column {name!r} has the type {type_}: {advice}")
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
    read = {name: _column(name, _without_nan(name, values)) for name, values in columns.items()}
    lengths = {name: len(column.values) for name, column in read.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns differ in length: {lengths}")
    return read


def _without_nan(name: str, values: Any) -> Any:
    """A list with None for NaN; an array with more axes as it is."""
    if _is_array(values):
        if values.ndim > 1:
            return values
        unit = {"M": "datetime64[us]", "m": "timedelta64[us]"}.get(values.dtype.kind)
        values = (values if unit is None else values.astype(unit)).tolist()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        message = f"is {_shown(values)}: give a list with a value for each row"
        raise ColumnError(f"column {name!r} {message}")
    values = [None if isinstance(v, float) and v != v else v for v in values]  # noqa: PLR0124
    missing = tuple(type_ for type_ in set(map(type, values)) if type_.__name__ in MISSING)
    return [None if isinstance(v, missing) else v for v in values] if missing else values


def _column(name: str, values: Any) -> Column:
    if _is_array(values):
        return Column("tensor", values)
    types = {type(value) for value in values} - {type(None)}
    if any(type_.__module__ == "numpy" for type_ in types):
        values = [_of_numpy(v) if hasattr(v, "item") else v for v in values]
        types = {type(value) for value in values} - {type(None)}
    if any(type_.__name__ in CONVERSIONS for type_ in types):
        values = [CONVERSIONS.get(type(v).__name__, lambda same: same)(v) for v in values]
        types = {type(value) for value in values} - {type(None)}
    if types and all(t in (list, tuple) or t.__name__ == "ndarray" for t in types):
        return _tensors(name, values)
    if not types:
        return Column("null", values)
    for kind, known in KINDS.items():
        if all(issubclass(t, known) and (t is not bool or kind == "boolean") for t in types):
            if Decimal in types:
                values = [float(v) if isinstance(v, Decimal) else v for v in values]
            return Column(kind, values)
    raise _refused(name, values)


def _of_numpy(value: Any) -> Any:
    """The value of Python; numpy makes integers of times in nanoseconds."""
    unit = {"M": "datetime64[us]", "m": "timedelta64[us]"}.get(value.dtype.kind)
    return (value if unit is None else value.astype(unit)).item()


def _refused(name: str, values: Iterable[Any]) -> ColumnError:
    """The error of values that no column has, with the first one of each type."""
    first = {type(v).__name__: v for v in reversed(list(values)) if v is not None}
    shown = ", ".join(f"{type_} ({_shown(first[type_])})" for type_ in sorted(first))
    advice = ADVICE.get(next(iter(first)), READ) if len(first) == 1 else ONE_TYPE
    return ColumnError(f"column {name!r} has values of type {shown}: {advice.format(name=name)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _tensors(name: str, values: list[Any]) -> Column:
    try:
        array = numpy().array(values)
    except ValueError:
        array = None
    if array is None or array.dtype.kind not in "biuf":
        raise _refused(name, values)
    return Column("tensor", array)


def _as_codes(column: Column) -> Column:
    """Numbers as categories: 1.0, which pandas makes of 1 in a column that lacks some, is "1"."""
    whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in column.values]
    return _as_text(Column(column.kind, whole))


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
    if matrix.dtype.names is not None:
        return {name: matrix[name] for name in matrix.dtype.names}
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
