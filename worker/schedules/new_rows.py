"""Which rows of a data set another data set does not have: rows that its model cannot have seen."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from core.datasets.datasets import Datasets
from core.exceptions import NotFound
from models.features.columns import Columns

BLOCK_ROWS = 50_000  # of the other data set in memory at a time


def rows_not_in(
    datasets: Datasets, dataset: str, rows: Int[np.ndarray, "rows"], other: str
) -> Int[np.ndarray, "some"] | None:
    """Those of `rows` whose values, in the columns that both have, no row of `other` has.

    None if `other` was deleted or has no column in common.
    """
    try:
        before = datasets.get(other)
    except NotFound:
        return None
    types = {column.name: column.type for column in before.columns}
    names = [
        column.name
        for column in datasets.get(dataset).columns
        if types.get(column.name) == column.type
    ]
    if not names:
        return None
    wanted = list(_tuples(datasets.columns(dataset, names, rows), names))
    unseen = set(wanted)
    for start in range(0, before.rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, before.rows))
        unseen.difference_update(_tuples(datasets.columns(other, names, block), names))
    return rows[np.array([row in unseen for row in wanted], dtype=bool)]


def _tuples(columns: Columns, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(_hashable(columns[name]) for name in names), strict=True)


def _hashable(values: np.ndarray) -> list[Any]:
    """The values of a column; missing ones are None, so that they are equal."""
    if values.ndim > 1:
        return [row.tobytes() for row in values]
    if values.dtype.kind == "f":
        return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124
    found: list[Any] = values.tolist()
    return found
