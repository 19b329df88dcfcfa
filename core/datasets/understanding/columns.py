"""From a file's columns to canonical ones: what the texts mean."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column, canonical, check_names, times
from core.datasets.columns.place import Place
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.understanding import booleans, missing, plain_numbers
from core.datasets.understanding.fixes import ColumnFix
from core.datasets.understanding.texts import Texts, sample, trimmed, without
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
    check_names(names)
    if source.table.num_rows == 0:
        raise Invalid([(POINTER, "there are no rows: give at least one")])
    typed = [name for name in names if not source.has_texts(name)]
    table = canonical(source.table.select(typed)) if typed else source.table
    return [
        _untyped(source, name, fixes.get(name))
        if source.has_texts(name)
        else _typed(name, table.column(name), fixes.get(name))
        for name in names
    ]


def _untyped(source: Source, name: str, fix: ColumnFix | None) -> Understood:
    column = source.table.column(name)
    texts = Texts(name, column.cast(pa.large_string()), source.lines)
    found = _read(texts)
    if fix is not None and fix.use is not None:
        return replace(found, reading=replace(found.reading, use=fix.use))
    return found


def _read(texts: Texts) -> Understood:
    column = without(texts.column, missing.ALWAYS)
    if column.null_count == len(column):
        return _plain(texts, column.cast(pa.float64()), "number")
    numbers = plain_numbers.read(column)
    if numbers is not None:
        return _plain(texts, numbers, "number")
    column = without(trimmed(column), missing.ALWAYS)
    some = sample(column)
    if booleans.find(dict.fromkeys(some, 1)) and (found := _booleans(texts, column)):
        return found
    instants = times.parse(column, Place(texts.name))
    if pa.types.is_timestamp(instants.type):
        return _plain(texts, instants, "datetime")
    return _plain(texts, column, "category")


def _booleans(texts: Texts, column: Column) -> Understood | None:
    counted: Any = pc.value_counts(column.drop_null())
    counts = {one["values"]: one["counts"] for one in counted.to_pylist()}
    family = booleans.find(counts)
    if family is None:
        return None
    bits, (true, false) = family.bits(column), booleans.spelling(family, counts)
    if family.stays:
        bits = pc.if_else(bits, pa.scalar(true, column.type), pa.scalar(false, column.type))
    plain = (true.lower(), false.lower()) == ("true", "false")
    reading = ColumnReading(
        name=texts.name, type="boolean", format=None if plain else f"{true}/{false}"
    )
    return Understood(bits, reading)


def _plain(texts: Texts, column: Column, type_: str) -> Understood:
    return Understood(column, ColumnReading(name=texts.name, type=type_))


def _typed(name: str, column: Column, fix: ColumnFix | None) -> Understood:
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
