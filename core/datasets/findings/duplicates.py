"""Columns that hold the same, and rows that occur twice."""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column, tensors
from core.datasets.findings.checked_column import HEAD, CheckedColumn
from core.datasets.findings.finding import Finding, fix_column

_MIN_ROWS = 20  # two columns of few rows agree by chance
_MAX_CELLS = 10**8
_DISTINCT = 0.5  # distinct values ÷ rows of the column that makes equal rows improbable


def find_duplicate_columns(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each column that is a copy of an earlier one, or tells the same levels apart.

    Constants and tensors are not compared.
    """
    groups: dict[Hashable, list[CheckedColumn]] = defaultdict(list)
    for one in columns:
        if one.is_constant or one.profile.type == "tensor" or one.num_present < _MIN_ROWS:
            continue
        earlier = groups[_likeness(one)]
        for other in earlier:
            if found := _same(other, one):
                yield _finding(other, one, found)
                break
        else:
            earlier.append(one)


def _likeness(one: CheckedColumn) -> Hashable:
    """Equal for columns that may hold the same."""
    profile = one.profile
    if one.is_binary:
        return "levels", 2, profile.missing
    if profile.type == "number":
        return "number", profile.missing, profile.min, profile.max, profile.mean, profile.std
    if profile.type == "category":
        return "levels", profile.num_levels, profile.missing
    return profile.type, profile.missing


def _same(first: CheckedColumn, second: CheckedColumn) -> str | None:
    if _equal(_head(first), _head(second)) and _equal(first.column, second.column):
        return "equals"
    if not (_has_levels(first) and _has_levels(second)):
        return None
    if _recoded(_head(first), _head(second)) and _recoded(first.column, second.column):
        return "renames the levels of"
    return None


def _has_levels(one: CheckedColumn) -> bool:
    return one.is_binary or one.profile.type == "category"


def _head(one: CheckedColumn) -> Column:
    return one.column.slice(0, HEAD)


def _equal(first: Column, second: Column) -> bool:
    if first.type == second.type:
        return bool(first.equals(second))
    if pa.types.is_large_string(first.type) or pa.types.is_large_string(second.type):
        return False
    if pa.types.is_timestamp(first.type) or pa.types.is_timestamp(second.type):
        return False
    return bool(first.cast(pa.float64(), safe=False).equals(second.cast(pa.float64(), safe=False)))


def _recoded(first: Column, second: Column) -> bool:
    """Whether equal levels of one column are equal levels of the other."""
    one, other = _codes(first), _codes(second)
    pairs = np.unique(one.astype(np.int64) * (other.max() + 1) + other)
    return len(pairs) == len(np.unique(one)) == len(np.unique(other))


def _codes(column: Column) -> np.ndarray:
    """The level of each row as a number; a missing value is a level."""
    encoded: Any = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False))


def _finding(first: CheckedColumn, second: CheckedColumn, found: str) -> Finding:
    return Finding(
        code="duplicate_column",
        severity="info",
        column=second.name,
        message=f"column {second.name!r} {found} column {first.name!r} in every row: "
        "one of the two columns is enough",
        rows=second.num_rows,
        fix=fix_column(second.name, use=False),
    )


def find_duplicate_rows(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding if rows occur twice that are too varied to be equal by chance."""
    rows = columns[0].num_rows
    if rows < _MIN_ROWS or rows * len(columns) > _MAX_CELLS or not _are_varied(columns):
        return
    _, first = np.unique(_hashes(columns), return_index=True)
    again = rows - len(first)
    if not again:
        return
    repeated = np.setdiff1d(np.arange(rows), first)
    lines = columns[0].lines(repeated[:5].tolist())
    yield Finding(
        code="duplicate_rows",
        severity="info",
        message=f"{again} of {rows} rows {'is' if again == 1 else 'are'} equal to an earlier row "
        f"(line{'' if again == 1 else 's'} {', '.join(map(str, lines))}"
        f"{' …' if again > 5 else ''}): if a row is in the training rows and its copy is in the "
        "held-out rows, the scores are too good",
        rows=again,
    )


def _are_varied(columns: list[CheckedColumn]) -> bool:
    """Whether a column of numbers, times or words differs in most rows."""
    for one in columns:
        if one.profile.type == "tensor":
            return True
        head = one.column.slice(0, HEAD)
        if len(pc.unique(head)) >= _DISTINCT * len(head):
            return True
    return False


def _hashes(columns: list[CheckedColumn]) -> np.ndarray:
    """A number of 64 bits per row; unequal rows have equal ones with a probability of 2⁻⁶⁴."""
    mixed = np.full(columns[0].num_rows, 0x9E3779B97F4A7C15, np.uint64)
    for one in columns:
        mixed ^= _bits(one)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _bits(one: CheckedColumn) -> np.ndarray:
    if tensors.is_fixed_shape(one.column.type):
        flat = np.ascontiguousarray(tensors.to_numpy(one.column).reshape(one.num_rows, -1))
        return np.array([hash(row.tobytes()) for row in flat], np.int64).view(np.uint64)
    if pa.types.is_large_string(one.column.type):
        return _codes(one.column).astype(np.uint64)
    if pa.types.is_timestamp(one.column.type):
        numbers = one.column.cast(pa.int64()).fill_null(pa.scalar(-(2**62), pa.int64()))
        return numbers.to_numpy().view(np.uint64)
    column = one.column.cast(pa.uint8()) if pa.types.is_boolean(one.column.type) else one.column
    values = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64) + 0.0  # −0 is 0
    return values.view(np.uint64)
