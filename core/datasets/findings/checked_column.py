"""A column as the checks see it: its profile, and its values where a check asks for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column
from core.datasets.files.source import Lines
from core.datasets.findings.finding import MAX_EXAMPLES, Example, examples_of
from models.features.columns import ColumnProfile, level_text

HEAD = 1_000  # values that a check looks at before it looks at all


@dataclass(frozen=True)
class CheckedColumn:
    """A canonical column. Values of numbers are as Arrow has them: integers or floats.

    Args:
        copies: rows of the table that equal an earlier one; 0 if they are too many to be copies.
    """

    column: Column
    profile: ColumnProfile
    lines: Lines
    place: int = 0
    copies: int = 0

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def num_rows(self) -> int:
        return len(self.column)

    @property
    def num_present(self) -> int:
        """The number of values that are not missing."""
        return self.num_rows - self.profile.missing

    @property
    def is_constant(self) -> bool:
        """Whether the values that are not missing are equal; also if all are missing."""
        one = self.profile
        if one.type in ("number", "boolean", "tensor"):
            return one.min == one.max
        return one.type == "category" and (one.num_levels or 0) <= 1

    @property
    def is_binary(self) -> bool:
        """Whether a number or boolean has two values: all deviate to one of the two ends."""
        one = self.profile
        if one.type == "category":
            return one.num_levels == 2
        if one.min is None or one.max is None or one.mean is None or one.min == one.max:
            return False
        spread = (one.mean - one.min) * (one.max - one.mean)
        return one.type in ("number", "boolean") and bool(
            np.isclose((one.std or 0) ** 2, spread, atol=0.0)
        )

    @cached_property
    def head(self) -> np.ndarray:
        """The first values that are not missing, of a number."""
        return _numbers(self.column.slice(0, 2 * HEAD).drop_null().slice(0, HEAD))

    @property
    def values(self) -> np.ndarray:
        """All values that are not missing, of a number: copied each time, not kept."""
        return _numbers(self.column.drop_null())

    @cached_property
    def texts(self) -> Sequence[str]:
        """The first values that are not missing, of strings."""
        return [str(text) for text in self.column.slice(0, 2 * HEAD).drop_null().to_pylist()[:HEAD]]

    @cached_property
    def num_distinct(self) -> int:
        """The number of distinct values, without the missing one."""
        if self.profile.num_levels is not None:
            return self.profile.num_levels
        return int(pc.count_distinct(self.column, mode="only_valid").as_py())

    def examples(self, value: float | None = None) -> tuple[Example, ...]:
        """The first cells with a value, or with any if None."""
        if value is None:
            found = pc.is_valid(self.column)
        else:
            found = pc.equal(self.column, pa.scalar(value, pa.float64()))
        return self.examples_where(found)

    def examples_where(
        self, found: "pa.ChunkedArray[Any] | pa.BooleanArray"
    ) -> tuple[Example, ...]:
        """The first cells of the rows that are found: true in a column of booleans."""
        rows = [int(row) for row in pc.indices_nonzero(found)[:MAX_EXAMPLES].to_numpy()]
        cells = [_text(self.column[row].as_py()) for row in rows]
        return examples_of(self.lines(rows), cells)


def _numbers(column: Column) -> np.ndarray:
    return np.asarray(column.to_numpy())


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat() if value.time() != time() else value.date().isoformat()
    return level_text(value) if isinstance(value, str | float | bool) else str(value)
