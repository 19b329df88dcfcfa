"""The size of what a row stores, counted by the database: nothing of it is read."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import JSON, BigInteger, ColumnElement, Text, cast, func, inspect, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class text_bytes(GenericFunction[int]):  # noqa: N801 - called as SQL's functions are
    """The bytes of a text or of stored JSON."""

    type = BigInteger()
    inherit_cache = True


@compiles(text_bytes)
def _of_texts(element: text_bytes, compiler: SQLCompiler, **options: Any) -> str:
    [column] = element.clauses
    return compiler.process(func.octet_length(cast(column, Text)), **options)


@compiles(text_bytes, "sqlite")
def _of_blobs(element: text_bytes, compiler: SQLCompiler, **options: Any) -> str:
    """SQLite's `length` counts the bytes of a blob, and the characters of a text."""
    [column] = element.clauses
    return f"length(CAST({compiler.process(column, **options)} AS BLOB))"


def stored_bytes(columns: Sequence[InstrumentedAttribute[Any]]) -> ColumnElement[int]:
    """The bytes of these columns, which hold texts or JSON."""
    sizes = (func.coalesce(text_bytes(column), 0) for column in columns)
    return sum(sizes, literal(0, BigInteger))


def long_columns(table: Any) -> list[InstrumentedAttribute[Any]]:
    """The columns of unlimited length: JSON and texts."""
    columns = inspect(table).column_attrs
    return [getattr(table, c.key) for c in columns if isinstance(c.columns[0].type, JSON | Text)]
