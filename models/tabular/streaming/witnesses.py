"""Rows that a sample must have, so that encoders and targets know all that the table has.

A sample may lack the only missing value of a column, its extremes, or a rare class. The first row
of each is kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import MAX_CLASSES, present
from models.tabular.streaming.blocks import UsableBlock
from models.tabular.streaming.survey import as_numbers


@dataclass(frozen=True)
class Row:
    """A row by its number among the usable ones, and its fold."""

    number: int
    fold: int
    columns: Columns


@dataclass
class Witnesses:
    """The rows so far, by what they bear witness of.

    Args:
        target: whose fractions or classes are kept.
        is_number: whether the target is a number.
    """

    target: str
    is_number: bool
    rows: dict[tuple[str, Any], Row] = field(default_factory=dict)
    _extremes: dict[tuple[str, str], float] = field(default_factory=dict)

    def look(self, block: UsableBlock, folds: Int[np.ndarray, "rows"]) -> None:
        """Keep rows of a block of rows to learn from.

        Raises:
            InvalidData: if the target has more classes than a model may have.
        """
        for key, place in self._found(block.columns):
            own = {name: values[place : place + 1].copy() for name, values in block.columns.items()}
            self.rows[key] = Row(int(block.rows[place]), int(folds[place]), own)
        classes = sum(name == "class" for name, _ in self.rows)
        if classes > MAX_CLASSES:
            raise InvalidData(
                f"the target has more than {MAX_CLASSES} classes; classification needs 2 to "
                f"{MAX_CLASSES}",
                "/target",
            )

    def without(
        self, is_known: Callable[[Int[np.ndarray, "rows"]], Bool[np.ndarray, "rows"]]
    ) -> Sequence[Row]:
        """The rows whose numbers are not known, in their order."""
        rows = {row.number: row for row in self.rows.values()}
        numbers = np.array(sorted(rows), np.int64)
        return [rows[number] for number in numbers[~is_known(numbers)].tolist()]

    def _found(self, columns: Columns) -> Iterator[tuple[tuple[str, Any], int]]:
        """What rows of a block bear witness of, and their places in it."""
        if not len(columns[self.target]):
            return
        for name, values in columns.items():
            known = present(values)
            yield from self._first("missing", name, ~known)
            if values.dtype != object and known.any():
                yield from self._beyond(name, values, known)
        target = columns[self.target]
        if self.is_number:
            yield from self._first("fraction", self.target, target != np.round(target))
            return
        distinct, places = np.unique(target.astype(str), return_index=True)
        for text, place in zip(distinct.tolist(), places.tolist(), strict=True):
            if ("class", text) not in self.rows:
                yield ("class", text), place

    def _first(
        self, what: str, name: str, has: Bool[np.ndarray, "rows"]
    ) -> Iterator[tuple[tuple[str, Any], int]]:
        if (what, name) not in self.rows and has.any():
            yield (what, name), int(has.argmax())

    def _beyond(
        self, name: str, values: np.ndarray, known: Bool[np.ndarray, "rows"]
    ) -> Iterator[tuple[tuple[str, Any], int]]:
        """The rows of a new least or greatest value."""
        numbers = as_numbers(values)
        for side, sign in (("least", 1.0), ("greatest", -1.0)):
            signed = np.where(known, sign * numbers, np.inf)
            place = int(signed.argmin())
            if signed[place] < self._extremes.get((name, side), np.inf):
                self._extremes[name, side] = float(signed[place])
                yield (side, name), place


def joined(parts: Sequence[Columns]) -> Mapping[str, np.ndarray]:
    """The columns of parts of a table, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
