"""Plain numbers of many short columns at once, since a kernel costs more than a few cells.

A column is read here only if on its own it would become the same numbers, without a finding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.understanding import plain_numbers
from core.datasets.understanding.dates.columns import COMPACT
from core.datasets.understanding.hints import Hints
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import ALWAYS
from core.datasets.understanding.number_columns import EITHER
from core.datasets.understanding.texts import without

MOST_ROWS = 2_000
_CELLS = 2**16  # of a group
_FEW = 4  # columns, which are read one by one


def read(columns: Sequence[Column], hints: Hints) -> "list[Column | None]":
    """Numbers in canonical form for each column; None for one that must be read on its own.

    Args:
        columns: texts, of equally many rows.
    """
    if not columns or not 0 < len(columns[0]) <= MOST_ROWS:
        return [None] * len(columns)
    size = _CELLS // len(columns[0])
    found: list[Column | None] = []
    for start in range(0, len(columns), size):
        found += _group(columns[start : start + size], hints)
    return found


def _group(columns: Sequence[Column], hints: Hints) -> "list[Column | None]":
    if len(columns) <= _FEW:
        return [None] * len(columns)
    if (found := _joined(columns, hints)) is not None:
        return found
    half = len(columns) // 2
    return [*_group(columns[:half], hints), *_group(columns[half:], hints)]


def _joined(columns: Sequence[Column], hints: Hints) -> "list[Column | None] | None":
    """As `read`; None if a text in the group is no plain number."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    joined: Any = pa.concat_arrays(chunks)
    texts = without(pa.chunked_array([joined]).cast(pa.large_string()), ALWAYS)
    numbers = plain_numbers.read(texts)
    if numbers is None or _size(numbers) > plain_numbers.EXACT:
        return None
    shape = len(columns), len(columns[0])
    if pa.types.is_integer(numbers.type):
        empty = _flags(pc.is_null(numbers), shape).all(axis=1)
        return _parts(numbers, shape, empty | _flags(_are_dates(numbers), shape).any(axis=1))
    marked = _flags(pc.match_substring_regex(texts, "[^0-9+-]"), shape).any(axis=1)
    if not marked.any():
        return None
    doubtful = _flags(_may_be_thousands(texts, hints), shape, null=True).all(axis=1)
    found = _parts(numbers, shape, doubtful | ~marked)
    places = np.flatnonzero(~marked).tolist()  # of columns of whole numbers
    whole = _group([columns[place] for place in places], hints)
    for place, one in zip(places, whole, strict=True):
        found[place] = one
    return found


def _parts(numbers: Column, shape: tuple[int, int], alone: Any) -> "list[Column | None]":
    rows = shape[1]
    return [
        None if is_alone else numbers.slice(place * rows, rows)
        for place, is_alone in enumerate(alone.tolist())
    ]


def _size(numbers: Column) -> float:
    """The largest absolute value."""
    ends = pc.min_max(numbers)
    return max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0))


def _are_dates(numbers: Column) -> Column:
    """Where a whole number may be a date such as 20240131, with or without a time."""
    found = pc.equal(numbers, None)
    for _, first, last in COMPACT:
        inside = pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last))
        found = pc.or_kleene(found, inside)
    return pc.fill_null(found, False)


def _may_be_thousands(texts: Column, hints: Hints) -> Column:
    """Where a point may part thousands: nowhere, if the file shows that it does not."""
    pattern = {".": "^$", None: f"^{EITHER.pattern}$"}.get(hints.decimal, "")
    return pc.match_substring_regex(texts, pattern)


def _flags(where: Column, shape: tuple[int, int], *, null: bool = False) -> np.ndarray:
    """One row of the result for each column."""
    return np.asarray(pc.fill_null(where, null).to_numpy()).reshape(shape)
