"""Records of JSON to columns: nested objects become names with dots, lists of numbers tensors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import tensors
from core.datasets.columns.place import MAX_COLUMNS
from core.datasets.findings.finding import Finding
from core.datasets.formats.mixing import Pieces
from core.exceptions import Invalid, NotParseable

BATCH = 2**13  # records whose values are Python objects at the same time
MAX_DEPTH = 32


@dataclass
class _Column:
    """A column that grows: scalars, or arrays of numbers of one shape."""

    scalars: Pieces = field(default_factory=Pieces)
    arrays: list[Any] = field(default_factory=list)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    problem: str | None = None
    missing: int = 0

    def add(self, values: Sequence[Any]) -> None:
        if not any(type(value) is list for value in values):
            self.missing += values.count(None)
            self.scalars.add(values)
            return
        self.scalars.add_missing(len(values))
        self.missing += values.count(None)
        array = _array(values)
        if array is None:
            self.problem = self.problem or _problem(values)
            return
        self.arrays.append(array)
        self.shapes.add(array.shape[1:])

    def column(self, rows: int) -> Any:
        """The column, or a sentence that says why there is none."""
        if not self.arrays and self.problem is None:
            return self.scalars.column()
        if self.problem is None and len(self.shapes) > 1:
            return f"holds lists of different shapes {sorted(self.shapes)[:3]}"
        if self.problem is None and sum(map(len, self.arrays)) != rows:
            return f"holds lists, and {self.missing} rows have none"
        return self.problem or tensors.from_numpy(np.concatenate(self.arrays))


class Columns:
    """Columns that grow by records."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._batch: dict[str, list[Any]] = {}
        self._in_batch = self.rows = 0

    def add(self, line: int, record: Mapping[str, Any]) -> None:
        """Add a record. Raises `NotParseable` if two of its values have one name."""
        row = self._in_batch
        for name, value in _flat(line, record):
            values = self._batch.get(name)
            if values is None:
                values = self._batch[name] = [None] * row
            elif len(values) > row:
                raise NotParseable(f"{_place(line)}: {name!r} is given twice")
            else:
                values.extend([None] * (row - len(values)))
            values.append(value)
        self._in_batch += 1
        if self._in_batch == BATCH:
            self._flush()

    def finish(self) -> tuple[pa.Table, frozenset[str], tuple[Finding, ...]]:
        """The table, the names of columns of several kinds, and what was left out."""
        self._flush()
        columns = {name: column.column(self.rows) for name, column in self._columns.items()}
        mixed = {n for n, c in self._columns.items() if c.scalars.is_mixed}
        kept = {name: column for name, column in columns.items() if not isinstance(column, str)}
        findings = [left_out(n, why, self.rows) for n, why in columns.items() if n not in kept]
        if not kept:
            raise Invalid([("/columns", "; ".join(f.message for f in findings) or NO_RECORDS)])
        return pa.table(kept), frozenset(mixed) & set(kept), tuple(findings)

    def _flush(self) -> None:
        if len(self._batch) + len(self._columns) > 2 * MAX_COLUMNS:
            raise Invalid([("/columns", f"there are more than {MAX_COLUMNS} different keys")])
        for name in [*self._batch, *(n for n in self._columns if n not in self._batch)]:
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = _Column(missing=self.rows)
                column.scalars.add_missing(self.rows)
            values = self._batch.get(name, [])
            column.add([*values, *[None] * (self._in_batch - len(values))])
        self.rows += self._in_batch
        self._batch, self._in_batch = {}, 0


NO_RECORDS = "there are no records: give at least one"


def left_out(name: str, why: str, rows: int) -> Finding:
    """The finding on a column that cannot be one."""
    return Finding(
        code="nested",
        severity="warning",
        column=name,
        rows=rows,
        message=f"column {name!r} {why}: it was left out; lists of numbers of one length are read "
        "as tensors",
    )


def _place(line: int) -> str:
    return f"line {line}" if line else "in a record"


def _flat(line: int, record: Mapping[str, Any], depth: int = 1) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if type(value) is not dict:
            yield name, value
        elif depth == MAX_DEPTH:
            raise NotParseable(f"{_place(line)}: objects are more than {MAX_DEPTH} deep")
        else:
            yield from ((f"{name}.{inner}", v) for inner, v in _flat(line, value, depth + 1))


def _array(values: Sequence[Any]) -> np.ndarray | None:
    """The lists as one array with rows on the first axis; None if they do not make one."""
    lists = [value for value in values if value is not None]
    try:
        array = np.array(lists)
    except (ValueError, OverflowError):
        return None
    is_array = array.dtype.kind in "biuf" and array.ndim > 1 and 0 not in array.shape
    return array if is_array else None


def _problem(values: Sequence[Any]) -> str:
    lists = [value for value in values if type(value) is list]
    if len(lists) < sum(value is not None for value in values):
        return "holds lists and other values"
    lengths = sorted({len(value) for value in lists})
    if len(lengths) > 1:
        return f"holds lists of different lengths ({lengths[0]} to {lengths[-1]})"
    return "holds lists of other things than numbers"
