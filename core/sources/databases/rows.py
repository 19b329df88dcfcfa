"""Rows of a database as an Arrow file, with types that follow from all values of a column."""

import datetime
import decimal
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from core.exceptions import Invalid
from core.sources.budget import Budget

QUERY = "/source/query"
BATCH_ROWS = 10_000
BATCH_BYTES = 2**25  # of their values in Python
MEDIA_TYPE = "application/vnd.apache.arrow.file"

Row = Sequence[Any]


def write_rows(names: Sequence[str], rows: Iterable[Row], to: Any, budget: Budget) -> int:
    """Write rows to an Arrow file, open for bytes. Returns their number.

    A column with numbers alone is one of numbers, and so on; all others are of texts.

    Raises:
        Invalid: two columns have the same name, there is no row, or a value cannot be read.
        TooLarge: the budget is used up.
    """
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        message = f"two columns are named {twice[0]!r}: name one otherwise, with AS"
        raise Invalid([(QUERY, message)])
    pieces: list[list[pa.Array[Any]]] = [[] for _ in names]
    count = 0
    try:
        for batch in _batches(rows):
            count += len(batch)
            for column, values in zip(pieces, zip(*batch, strict=True), strict=True):
                column.append(_array(values))
                budget.take(column[-1].nbytes)
    except (RecursionError, OverflowError) as error:  # lists in lists, times before the year 1
        message = f"a value after row {count} is not read: {error}"
        raise Invalid([(QUERY, message)]) from error
    if not count:
        raise Invalid([(QUERY, "the query returns no rows")])
    table = pa.table({name: _joined(c) for name, c in zip(names, pieces, strict=True)})
    with pa.ipc.new_file(to, table.schema) as writer:
        writer.write_table(table)
    return count


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    num_bytes = 0
    for row in rows:
        batch.append(row)
        num_bytes += size_of(row)
        if len(batch) == BATCH_ROWS or num_bytes > BATCH_BYTES:
            yield batch
            batch, num_bytes = [], 0
    if batch:
        yield batch


def size_of(row: Row) -> int:
    """The bytes of a row's values; of lists and objects only the outermost."""
    return sum(map(sys.getsizeof, row))


def _array(values: Sequence[Any]) -> "pa.Array[Any]":
    plain = [_plain(value) for value in values]
    try:
        return pa.array(plain)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else _text(value) for value in plain])


def _plain(value: Any) -> Any:
    """The value as Arrow knows it."""
    convert: Callable[[Any], Any] | None = _CONVERTED.get(type(value))
    if convert is not None:
        return convert(value)
    return value if value is None or isinstance(value, _KNOWN) else str(value)


def _utc(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is None else value.astimezone(datetime.UTC)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


_KNOWN = (bool, int, float, str, datetime.date, list)
_CONVERTED: dict[type, Callable[[Any], Any]] = {
    decimal.Decimal: float,
    datetime.datetime: _utc,
    datetime.timedelta: datetime.timedelta.total_seconds,
    dict: json.dumps,
    bytes: bytes.hex,
    memoryview: lambda value: bytes(value).hex(),
}


def _joined(pieces: Sequence["pa.Array[Any]"]) -> "pa.ChunkedArray[Any]":
    """The pieces of a column with one type, which all of them have or can become."""
    types = {piece.type for piece in pieces} - {pa.null()}
    wanted: Any = types.pop() if len(types) == 1 else _common(types)
    return pa.chunked_array([_cast(piece, wanted) for piece in pieces], wanted)


def _cast(piece: Any, wanted: Any) -> Any:
    """The piece in this type. Integers that a double does not have are rounded, as decimals are."""
    if pa.types.is_string(wanted) and pa.types.is_nested(piece.type):
        return pa.array([None if one is None else _text(one) for one in piece.to_pylist()], wanted)
    return piece.cast(wanted, safe=False)


def _common(types: set[pa.DataType]) -> pa.DataType:
    if not types:
        return pa.string()  # without a value
    numbers = all(pa.types.is_integer(one) or pa.types.is_floating(one) for one in types)
    return pa.float64() if numbers else pa.string()
