"""Rows in any form → an Arrow table of a model's inputs, as the client would send it."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import nanoarrow as na
import pyarrow as pa

from credence.client.arrow import Table, to_stream
from credence.client.frames import given_name, read_frame, select, with_plain_columns
from credence.types import Feature
from models.features.columns import InputColumn

Rows: TypeAlias = "pa.Table | pa.RecordBatch"


def read_rows(data: Any, inputs: Sequence[InputColumn]) -> tuple[pa.Table, Callable[[Table], Any]]:
    """The inputs' columns, and the function that gives a result the form that the rows had.

    Args:
        data: an Arrow table or record batch, whose numbers are not copied, or what the client
            takes: a frame of pandas or polars, a dict of arrays, a matrix, a list of records.

    Raises:
        TypeError, ValueError: the data cannot be read; the message says which part.
    """
    if isinstance(data, str | Path):
        message = f"a loaded model reads no files, such as {str(data)!r}: read it with pandas first"
        raise TypeError(f"{message}, or predict with credence.Client, whose service reads it")
    if isinstance(data, pa.Table | pa.RecordBatch):
        return select_inputs(data, inputs), pa.table
    features: list[Feature] = [{"name": one.name, "type": one.type} for one in inputs]
    frame = read_frame(data, [one.name for one in inputs])
    body = to_stream(select(frame.columns, features))
    return pa.ipc.open_stream(pa.py_buffer(body)).read_all(), frame.restore


def select_inputs(rows: Rows, inputs: Sequence[InputColumn]) -> pa.Table:
    """The columns of the inputs that are there; numbers and booleans of a category as text."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    table = with_plain_columns(table)
    there = set(table.column_names)
    given = ((one, given_name(one.name, there)) for one in inputs)
    pairs = ((one.name, _as_input(one, table[name])) for one, name in given if name in there)
    return pa.table(dict(pairs))


def to_client_table(table: pa.Table) -> Table:
    """The table as the client reads it."""
    batches = list(na.ArrayStream(table.combine_chunks()))
    return Table(batches or [na.Array([], na.Schema(table.schema))])


def _as_input(column: InputColumn, values: Any) -> Any:
    is_code = pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)
    return values.cast(pa.string()) if column.type == "category" and is_code else values


concatenate = partial(pa.concat_tables, promote_options="none")
