"""How often each value of a target occurs, read some rows at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from core.datasets.findings.finding import MAX_EXAMPLES
from models.features.columns import Columns
from models.features.targets import present

BLOCK_ROWS = 2**18
CONSTANT = 0.99  # rows of one value ÷ rows, from which a target is nearly constant


class Load(Protocol):
    """Reads columns by name, all rows or a slice of them."""

    def __call__(self, names: Sequence[str], rows: slice = ..., /) -> Columns: ...


@dataclass
class TargetValues:
    """What all rows of a target say, without the rows.

    Args:
        counts: rows by value, in the order in which values first occur. Of numbers that differ so
            often that none is nearly constant it is empty: they would take as much memory as rows.
        absent: rows without a value.
        first_absent: the first of them, counting from 0.
    """

    rows: int
    counts: Counter[Any] = field(default_factory=Counter)
    absent: int = 0
    first_absent: list[int] = field(default_factory=list)

    @property
    def known(self) -> int:
        return self.rows - self.absent

    @classmethod
    def read(
        cls, load: Load, name: str, rows: int, *, classes: bool, block_rows: int = BLOCK_ROWS
    ) -> "TargetValues":
        """Read a target.

        Args:
            classes: whether all its values are counted, whatever their number.
        """
        found, counted = cls(rows), True
        for start, values in _blocks(load, name, rows, block_rows):
            known = present(values)
            found._note_absent(start, known)
            if counted:
                found.counts.update(values[known].tolist())
                counted = classes or len(found.counts) - 1 < (1 - CONSTANT) * rows
                if not counted:
                    found.counts.clear()
        return found

    def _note_absent(self, start: int, known: np.ndarray) -> None:
        absent = np.flatnonzero(~known)
        self.absent += len(absent)
        shown = absent[: MAX_EXAMPLES - len(self.first_absent)]
        self.first_absent += [start + int(row) for row in shown]


def _blocks(load: Load, name: str, rows: int, block_rows: int) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, rows, block_rows):
        yield start, load([name], slice(start, start + block_rows))[name]
