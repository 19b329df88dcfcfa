"""Columns of any Arrow type to columns that a data set may have.

Structs become names with dots, lists of numbers of one length tensors. What has no place is left
out, with a finding.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import compute

from core.datasets.columns import is_supported, numbers, tensors
from core.datasets.columns.strings import is_string
from core.datasets.findings.finding import Finding
from core.datasets.formats.json_columns import left_out
from core.exceptions import Invalid

pc: Any = compute  # its stubs lack functions
Array = Any
MAX_DEPTH = 32


def flattened(table: pa.Table) -> tuple[pa.Table, tuple[Finding, ...]]:
    """The table without nested columns, and what was done to them.

    Raises:
        Invalid: no column is left.
    """
    names: list[str] = []
    columns: list[Array] = []
    findings: list[Finding] = []
    for place in range(table.num_columns):
        name, column = table.schema.field(place).name, table.column(place)
        for found, part in _parts(name, column):
            if isinstance(part, str):
                findings.append(left_out(found, part, table.num_rows))
            else:
                names.append(found)
                columns.append(part)
        if pa.types.is_duration(column.type):
            findings.append(_durations(name, table.num_rows))
    if not columns and findings:
        raise Invalid([("/columns", "; ".join(finding.message for finding in findings[:20]))])
    return pa.table(columns, names=names), tuple(findings)


def _parts(name: str, column: Array, depth: int = 1) -> Iterator[tuple[str, Array]]:
    """Columns, or for a column that has no place the reason."""
    column = _plain(column)
    type_ = column.type
    if pa.types.is_struct(type_) and depth <= MAX_DEPTH:
        for field, inner in zip(type_, column.flatten(), strict=True):
            yield from _parts(f"{name}.{field.name}", inner, depth + 1)
    elif tensors.is_tensor(type_) and not _lacks(column):
        yield name, column
    elif _is_list(type_):
        yield name, _tensor(column)
    elif is_supported(type_) and not tensors.is_tensor(type_):
        yield name, column
    else:
        yield name, f"has the type {type_}, which is no number, text, boolean or time"


def _plain(column: Array) -> Array:
    """Without dictionaries, encodings of runs, extensions and durations."""
    type_: Any = column.type
    is_extension = isinstance(type_, pa.BaseExtensionType)
    if is_extension and not tensors.is_fixed_shape(type_):
        storages: Any = [chunk.storage for chunk in column.chunks]
        return _plain(pa.chunked_array(storages, type_.storage_type))
    if pa.types.is_dictionary(type_):
        return _plain(_without_dictionary(column, type_.value_type))
    if pa.types.is_run_end_encoded(type_):
        decoded: list[Array] = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _plain(pa.chunked_array(decoded) if decoded else pa.nulls(0))
    if pa.types.is_duration(type_):
        return numbers.seconds(column)
    return column


def _without_dictionary(column: Array, type_: pa.DataType) -> Array:
    """Levels that are string views are cast first: Arrow takes no rows of them."""
    plain: Any = pa.large_string() if is_string(type_) else type_
    chunks: list[Array] = [c.dictionary.cast(plain).take(c.indices) for c in column.chunks]
    return pa.chunked_array(chunks, plain)


def _tensor(column: Array) -> Array:
    """The lists as tensors, or a sentence that says why they are none."""
    shape: list[int] = []
    values = column
    while _is_list(values.type):
        if values.null_count:
            return f"holds lists, and {values.null_count} are missing"
        lengths = pc.min_max(pc.list_value_length(values))
        low, high = lengths["min"].as_py(), lengths["max"].as_py()
        if low != high:
            return f"holds lists of different lengths ({low} to {high})"
        shape.append(high or 0)
        values = pc.list_flatten(values)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return f"holds lists of {values.type}, not of numbers"
    if values.null_count:
        return f"holds lists in which {values.null_count} numbers are missing"
    if 0 in shape:
        return "holds empty lists"
    return tensors.from_numpy(values.to_numpy().reshape(len(column), *shape))


def _is_list(type_: pa.DataType) -> bool:
    return (
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
        or pa.types.is_list_view(type_)
        or pa.types.is_large_list_view(type_)
    )


def _lacks(column: Array) -> bool:
    """Whether a tensor column lacks values, so that it cannot be one."""
    if column.null_count:
        return True
    return not tensors.is_fixed_shape(column.type) and bool(pc.list_flatten(column).null_count)


def _durations(name: str, rows: int) -> Finding:
    return Finding(
        code="unit",
        severity="info",
        column=name,
        rows=rows,
        message=f"column {name!r} holds durations: read as seconds",
    )
