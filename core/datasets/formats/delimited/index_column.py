"""Columns that a file has and nobody named: an index, row names, the ends of lines."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column
from core.datasets.files.names import ROW_NAME, left_out_index, unused
from core.datasets.files.options import ReadingOptions
from core.datasets.findings.finding import Finding
from core.datasets.formats.delimited.head import Head


def apply(
    table: pa.Table, head: Head, options: ReadingOptions
) -> tuple[pa.Table, bool, tuple[Finding, ...]]:
    """The table without empty columns that have no name and without its index.

    Returns:
        The table, whether an index was left out, and what its owner should know.
    """
    findings: list[Finding] = []
    names, first = list(head.names), 0 in head.unnamed
    if head.layout.header:
        empty = [place for place in sorted(head.unnamed) if _is_empty(table.column(place))]
        if empty and len(empty) < table.num_columns:
            findings.append(_left_out_empty(empty))
            table = table.select([p for p in range(table.num_columns) if p not in set(empty)])
            names = table.column_names
            first = first and 0 not in empty
    index = _is_index(table.column(0), head, options, unnamed=first) and table.num_columns > 1
    if index:
        findings.append(left_out_index(names[0], unnamed=first))
        table = table.select(names[1:])
    elif first and head.layout.header and _are_distinct(table.column(0)):
        name = unused(ROW_NAME, set(names[1:]))
        findings.append(_named(name))
        table = table.rename_columns([name, *names[1:]])
    named = [n for p, n in enumerate(head.names) if p in head.unnamed and n in table.column_names]
    if named and head.layout.header:
        findings.append(_made_names(named))
    return table, index, tuple(findings)


def _is_index(column: Column, head: Head, options: ReadingOptions, *, unnamed: bool) -> bool:
    if options.index is not None:
        return options.index
    return unnamed and head.layout.header and counts(column)


def counts(column: Column) -> bool:
    """Whether the texts are 0, 1, 2, … or 1, 2, 3, …"""
    if column.null_count or str(column[0]) not in ("0", "1"):
        return False
    try:
        numbers = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return False
    return bool(np.array_equal(numbers, numbers[0] + np.arange(len(numbers))))


def _is_empty(column: Column) -> bool:
    return column.null_count == len(column)


def _are_distinct(column: Column) -> bool:
    return not column.null_count and len(pc.unique(column)) == len(column)


def _left_out_empty(places: list[int]) -> Finding:
    shown = ", ".join(str(place + 1) for place in places[:20])
    return Finding(
        code="names",
        severity="info",
        message=f"empty columns without a name were left out (counting from 1: {shown}): "
        "lines begin or end with a delimiter",
    )


def _named(name: str) -> Finding:
    return Finding(
        code="index",
        severity="info",
        column=name,
        message=f"the first column has no name and names the rows: it was called {name!r}; set "
        "index=true to leave it out",
    )


def _made_names(named: list[str]) -> Finding:
    shown = ", ".join(named[:5])
    return Finding(
        code="names",
        severity="info",
        message=f"columns without a name were given one: {shown}",
    )
