"""Columns that hold the same, and rows that occur twice."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column, repeats
from core.datasets.columns.repeats import level_codes
from core.datasets.findings.checked_column import HEAD, CheckedColumn
from core.datasets.findings.finding import MAX_EXAMPLES, Finding, fix_column, fix_options

_MIN_ROWS = 20  # two columns of few rows agree by chance
_MAX_CELLS = 10**8
_CHANCE = 1e-3  # of so many equal rows, below which they are copies
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
    one, other = level_codes(first), level_codes(second)
    pairs = np.unique(one.astype(np.int64) * (other.max() + 1) + other)
    return len(pairs) == len(np.unique(one)) == len(np.unique(other))


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


def repeated_rows(columns: list[CheckedColumn]) -> np.ndarray:
    """The rows that equal an earlier one, if the columns are too varied for that to be usual."""
    rows = columns[0].num_rows
    if rows < _MIN_ROWS or rows * len(columns) > _MAX_CELLS or not _are_varied(columns):
        return np.arange(0)
    return repeats.repeated_rows([one.column for one in columns])


def find_duplicate_rows(columns: list[CheckedColumn], repeated: np.ndarray) -> Iterator[Finding]:
    """A finding if rows occur twice. It is a warning if chance does not explain that.

    Args:
        repeated: of `repeated_rows`.
    """
    again, rows = len(repeated), columns[0].num_rows
    if not again:
        return
    lines = columns[0].lines(repeated[:MAX_EXAMPLES].tolist())
    are_copies = _chance(columns, again) < _CHANCE
    yield Finding(
        code="duplicate_rows",
        severity="warning" if are_copies else "info",
        message=f"{again} of {rows} rows {'is' if again == 1 else 'are'} equal to an earlier row "
        f"({in_lines(lines, again)}): if a row is in the training rows and its copy is in the "
        "held-out rows, the scores are too good. "
        + ("Leave the copies out" if are_copies else "Chance explains so many: keep them"),
        rows=again,
        fix=fix_options(unique_rows=True) if are_copies else None,
    )


def repeats_left_out(lines: Sequence[int], count: int) -> Finding:
    """The finding that rows were left out because they equal an earlier one.

    Args:
        lines: of the first of them, in the file.
    """
    was = (
        "row that equals an earlier one was" if count == 1 else "rows that equal earlier ones were"
    )
    return Finding(
        code="duplicate_rows",
        severity="info",
        message=f"{count} {was} left out ({in_lines(lines, count)})",
        rows=count,
        fix=fix_options(unique_rows=False),
    )


def in_lines(lines: Sequence[int], count: int) -> str:
    """The first lines in a file, of `count` in all."""
    shown = ", ".join(map(str, lines[:MAX_EXAMPLES]))
    return f"line{'' if count == 1 else 's'} {shown}{' …' if count > MAX_EXAMPLES else ''}"


def _chance(columns: list[CheckedColumn], again: int) -> float:
    """At most the probability of so many equal rows, if the most varied column is independent of
    the others.

    Then the pairs that are equal in both have a Poisson distribution, and its mean follows from the
    pairs that are equal in each. Its tail is bounded as by Chernoff (1952).
    """
    varied = max(columns, key=_variety)
    others = [one for one in columns if one is not varied]
    rows = columns[0].num_rows
    pairs = rows * (rows - 1) / 2
    expected = _equal_pairs([varied]) / pairs * (_equal_pairs(others) if others else pairs)
    if again <= expected:
        return 1.0
    return math.exp(again - expected - again * math.log(again / expected))


def _equal_pairs(columns: list[CheckedColumn]) -> float:
    _, counts = np.unique(repeats.row_hashes([one.column for one in columns]), return_counts=True)
    return float((counts * (counts - 1.0)).sum() / 2)


def _are_varied(columns: list[CheckedColumn]) -> bool:
    """Whether a column of numbers, times or words differs in most rows."""
    return any(_variety(one) >= _DISTINCT for one in columns)


def _variety(one: CheckedColumn) -> float:
    """Different values ÷ values, at the beginning of the column."""
    if one.profile.type == "tensor":
        return 1.0
    head = one.column.slice(0, HEAD)
    return len(pc.unique(head)) / max(1, len(head))
