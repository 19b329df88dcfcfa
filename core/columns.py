"""One form for every data set: an Arrow table whose columns have one of six types.

number    any integer or float type; null is missing (a NaN that comes in becomes null)
boolean   bool
datetime  timestamp[us, UTC]; times without a zone are taken to be UTC
category  string
text      string, too (`profiles` tells them apart by their values)
tensor    fixed_shape_tensor of a number type, without missing values
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.exceptions import Invalid
from core.names import name_problem

MAX_COLUMNS = 100_000
MAX_TENSOR_DIMENSIONS = 8
FLOAT32_MAX = float(np.finfo(np.float32).max)
UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")

_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)"
_MONTH_PATTERN = r"^\d{4}-\d{2}$"
_LOCAL_PATTERN = rf"^{_DATE}([T ]{_TIME})?$"
_ZONED_PATTERN = rf"^{_DATE}[T ]{_TIME}{_ZONE}$"


def canonical(table: pa.Table, pointer: str = "/columns") -> pa.Table:
    """Bring a table to the form above.

    Raises:
        Invalid: naming the column, and the row where there is one, for names and values that no
            model can be trained on.
    """
    check_names(table.column_names, pointer)
    if table.num_rows == 0:
        raise Invalid([(pointer, "there are no rows: give at least one")])
    columns = [
        _canonical(table.column(i), name, f"{pointer}/{escape(name)}")
        for i, name in enumerate(table.column_names)
    ]
    return pa.table(columns, names=table.column_names)


def check_names(names: list[str], pointer: str = "/columns") -> None:
    """Raise `Invalid` for columns that could not be told apart or written down."""
    if not names:
        raise Invalid([(pointer, "there are no columns: give at least one")])
    if len(names) > MAX_COLUMNS:
        raise Invalid([(pointer, f"there are {len(names)} columns: give at most {MAX_COLUMNS}")])
    errors: list[tuple[str, str]] = []
    seen: set[str] = set()
    for position, name in enumerate(names):
        if problem := name_problem(name):
            errors.append((f"{pointer}/{position}", f"the name of column {position} {problem}"))
        elif name in seen:
            errors.append((f"{pointer}/{escape(name)}", f"the name {name!r} occurs twice"))
        seen.add(name)
    if errors:
        raise Invalid(errors[:20])


def escape(name: str) -> str:
    """A name as one part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def is_number(type_: pa.DataType) -> bool:
    """Whether the type holds real numbers, one per row."""
    return pa.types.is_integer(type_) or pa.types.is_floating(type_)


def _canonical(column: pa.ChunkedArray, name: str, path: str) -> pa.ChunkedArray:
    column = _decode(column)
    type_ = column.type
    if isinstance(type_, pa.FixedShapeTensorType):
        return _checked_tensor(column, name, path)
    if pa.types.is_fixed_size_list(type_) and is_number(type_.value_type):
        return _checked_tensor(_as_tensor(column, name, path), name, path)
    if pa.types.is_null(type_):
        return column.cast(pa.float64())
    if pa.types.is_boolean(type_):
        return column
    if pa.types.is_decimal(type_):
        return _checked_number(column.cast(pa.float64()), name, path)
    if is_number(type_):
        return _checked_number(column, name, path)
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _to_utc(column, name, path)
    if pa.types.is_string(type_):
        return _parse_times(column)
    raise Invalid(
        [
            (
                path,
                f"column {name!r} has the type {type_}, which is not supported: give numbers, "
                "booleans, strings, timestamps or fixed-size lists of numbers",
            )
        ]
    )


def _decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Undo encodings that say the same in another way."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _decode(column.cast(type_.value_type))
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return column.cast(pa.string())
    return column


def _checked_number(column: pa.ChunkedArray, name: str, path: str) -> pa.ChunkedArray:
    """Refuse infinities and what float32 cannot hold; let NaN be missing."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if not pa.types.is_float64(column.type):
        return column
    wrong = pc.greater(pc.abs(column), FLOAT32_MAX)
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise Invalid([(f"{path}/{row}", _out_of_range(name, row))])
    return column


def _out_of_range(name: str, row: int) -> str:
    return (
        f"column {name!r}, row {row} (the first is 0) holds infinity or a number outside float32: "
        f"give numbers between -{FLOAT32_MAX:.3g} and {FLOAT32_MAX:.3g}, or leave it empty"
    )


def _as_tensor(column: pa.ChunkedArray, name: str, path: str) -> pa.ChunkedArray:
    """A list of k numbers per row is a tensor of shape (k,)."""
    if column.null_count:
        raise Invalid([(path, f"column {name!r} has missing lists: a tensor needs every value")])
    type_ = pa.fixed_shape_tensor(column.type.value_type, (column.type.list_size,))
    chunks = [pa.ExtensionArray.from_storage(type_, chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, type_)


def _checked_tensor(column: pa.ChunkedArray, name: str, path: str) -> pa.ChunkedArray:
    """Refuse missing and non-finite values; one chunk at a time, to bound the memory."""
    if 0 in column.type.shape or len(column.type.shape) > MAX_TENSOR_DIMENSIONS:
        shape = list(column.type.shape)
        raise Invalid(
            [(path, f"column {name!r} has rows of shape {shape}: give at least one value")]
        )
    first = 0
    for chunk in column.chunks:
        if chunk.null_count or chunk.storage.flatten().null_count:
            raise Invalid([(path, f"column {name!r} lacks values: a tensor needs every one")])
        values = chunk.to_numpy_ndarray().reshape(len(chunk), -1)
        if values.dtype.kind == "f":
            row = _first_bad_row(values)
            if row is not None:
                raise Invalid([(f"{path}/{first + row}", _out_of_range(name, first + row))])
        first += len(chunk)
    return column


def _first_bad_row(values: np.ndarray) -> int | None:
    """The first row with a value that is NaN, infinite or outside float32."""
    with np.errstate(invalid="ignore"):
        good = (np.abs(values) <= FLOAT32_MAX).all(axis=1)
    return None if good.all() else int(np.argmin(good))


def _to_utc(column: pa.ChunkedArray, name: str, path: str) -> pa.ChunkedArray:
    """Instants in microseconds; finer digits are cut."""
    try:
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            return column.cast(UTC_MICROSECONDS, safe=False)
        return column.cast(pa.timestamp("us"), safe=False).cast(UTC_MICROSECONDS)
    except pa.ArrowInvalid as error:
        raise Invalid([(path, f"column {name!r} holds a time out of range: {error}")]) from error


def _parse_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings that are all months, dates or times of ISO 8601 become instants; others stay."""
    if column.null_count == len(column):
        return column
    for pattern, suffix, type_ in (
        (_MONTH_PATTERN, "-01", pa.timestamp("us")),
        (_LOCAL_PATTERN, "", pa.timestamp("us")),
        (_ZONED_PATTERN, "", UTC_MICROSECONDS),
    ):
        if pc.all(pc.match_substring_regex(column, pattern)).as_py():
            try:
                text = pc.binary_join_element_wise(column, suffix, "")
                return text.cast(type_).cast(UTC_MICROSECONDS)
            except pa.ArrowInvalid:  # such as month 13: a code that looks like a date
                return column
    return column


def looks_like_time(text: str) -> bool:
    """Whether one string would be read as an instant."""
    return any(re.match(p, text) for p in (_MONTH_PATTERN, _LOCAL_PATTERN, _ZONED_PATTERN))
