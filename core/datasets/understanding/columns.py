"""From a file's columns to canonical ones: what the texts mean."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from core.datasets.columns import Column, canonical
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import Invalid
from models.features.columns import ColumnReading

POINTER = "/columns"


@dataclass(frozen=True)
class Understood:
    """A canonical column, how it was read, and what its owner should know about that."""

    column: Column
    reading: ColumnReading
    findings: tuple[Finding, ...] = ()


def understand(source: Source, fixes: Mapping[str, ColumnFix]) -> list[Understood]:
    """Every column of a file in canonical form.

    Args:
        fixes: by column name; what they say goes before what the values look like.

    Raises:
        Invalid: a fix names no column, or cannot be done; or as `core.datasets.columns.canonical`.
    """
    names = source.table.column_names
    for place, name in enumerate(fixes):
        if name not in names:
            known = ", ".join(names[:20])
            raise Invalid([(f"{POINTER}/{place}/name", f"no column {name!r}: there are {known}")])
    table = canonical(source.table)
    return [_understood(name, table.column(name), fixes.get(name)) for name in table.column_names]


def _understood(name: str, column: Column, fix: ColumnFix | None) -> Understood:
    reading = ColumnReading(name=name, type=_type_of(column.type))
    if fix is not None and fix.use is not None:
        reading = replace(reading, use=fix.use)
    return Understood(column, reading)


def _type_of(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_timestamp(type_):
        return "datetime"
    if pa.types.is_large_string(type_):
        return "category"
    return "tensor" if isinstance(type_, pa.FixedShapeTensorType) else "number"
