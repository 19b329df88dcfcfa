"""Columns of a table on disk, read some rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from models.config import ModelConfig
from models.exceptions import Stopped
from models.features.columns import Columns
from models.features.usable import UsableRows

_CELLS = 2**22  # of a block: some 32 MiB of numbers, several times that of texts
_MAX_ROWS = 2**16  # blocks have fixed sizes, so that sums do not depend on the memory


@runtime_checkable
class ColumnBlocks(Protocol):
    """A table that can be read several times, from any row."""

    @property
    def num_rows(self) -> int: ...

    def read(self, start: int, stop: int, names: Sequence[str] | None = None) -> Columns:
        """Rows `start` to `stop` of some columns, or of all; fewer at the end of the table."""
        ...


@dataclass(frozen=True)
class UsableBlock:
    """Rows with a target and a weight above 0.

    Args:
        rows: their numbers among all usable rows, from 0.
        left_out: the rows of the block that are not usable, as `UsableRows` counts them.
    """

    rows: Int[np.ndarray, "rows"]
    columns: Columns
    left_out: UsableRows

    def part(self, chosen: Bool[np.ndarray, "rows"]) -> "UsableBlock":
        """Some of the rows."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return UsableBlock(self.rows[chosen], columns, self.left_out)


@dataclass(frozen=True)
class Table:
    """A table's blocks, what is learned from them, and when to stop reading."""

    blocks: ColumnBlocks
    config: ModelConfig
    should_stop: Callable[[], bool] = lambda: False

    def usable(self, names: Sequence[str]) -> Iterator[UsableBlock]:
        """The usable rows of some columns, and of those that tell which rows are usable.

        Raises:
            InvalidData: if a weight is missing, negative or infinite.
            Stopped: between two blocks.
        """
        config, first = self.config, 0
        needed = [config.target, *([] if config.weight is None else [config.weight])]
        wanted = list(dict.fromkeys([*names, *needed]))
        size = max(1, min(_MAX_ROWS, _CELLS // len(wanted)))
        for start in range(0, self.blocks.num_rows, size):
            if self.should_stop():
                raise Stopped
            columns = self.blocks.read(start, start + size, wanted)
            found = UsableRows.of(columns, config.target, config.weight)
            rows = first + np.arange(len(found.index))
            first += len(rows)
            usable = {name: values[found.index] for name, values in columns.items()}
            yield UsableBlock(rows, usable, found)
