"""Columns of a file that declares their types: strings are cleaned, and flagged if all numbers."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.columns.strings import is_string
from core.datasets.findings.finding import Finding
from core.datasets.understanding import forced, levels, number_columns, unread
from core.datasets.understanding.fixes import ColumnFix
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.texts import Texts
from core.datasets.understanding.understood import Understood
from core.exceptions import Invalid
from models.features.columns import ColumnReading


def read(texts: Texts, hints: Hints, missing: tuple[str, ...] = ()) -> Understood:
    """A column of strings that are no times, without stray blanks and with one spelling a level."""
    found = levels.read(texts, missing, typed=True)
    said = _numeric(texts, found.column, hints) or unread.findings(texts, found.column, hints)
    return replace(found, findings=(*found.findings, *said))


def plain(name: str, column: Column) -> Understood:
    """A column that is no column of strings."""
    return Understood(column, ColumnReading(name=name, type=_type_of(column.type)))


def as_fixed(
    texts: Texts, column: Column, fix: ColumnFix, hints: Hints, pointer: str
) -> Understood:
    """A declared column as its owner says that it is.

    Raises:
        Invalid: it cannot be read so.
    """
    kind, wanted = _type_of(column.type), forced.type_of(fix)
    if kind == "tensor":
        raise Invalid([(f"{pointer}/type", f"column {texts.name!r} is a tensor and stays one")])
    strings = is_string(texts.column.type)
    if strings and wanted == "category":
        clean = levels.exact if fix.format else levels.read
        return clean(texts, fix.missing or (), typed=True)
    if kind == wanted and not (strings and fix.format):
        return plain(texts.name, column)
    return forced.read(replace(texts, column=forced.as_texts(texts.column)), fix, hints, pointer)


def _numeric(texts: Texts, column: Column, hints: Hints) -> list[Finding]:
    if column.null_count == len(column):
        return []
    found = number_columns.read(texts, column, hints)
    if found is None or found.reading.type != "number":
        return []
    message = "all strings are numbers: read as category, because the file declares strings"
    fix: dict[str, Any] = {"type": "number"}
    if found.reading.format is not None:
        fix["format"] = found.reading.format
    return [texts.finding("mostly_numeric", "warning", message, **fix)]


def _type_of(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_timestamp(type_):
        return "datetime"
    if pa.types.is_large_string(type_):
        return "category"
    return "tensor" if isinstance(type_, pa.FixedShapeTensorType) else "number"
