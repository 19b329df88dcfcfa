"""Columns of a table on disk, read some rows at a time; the first pass, which counts its rows.

A random order of many rows would have to be kept in memory. The order of hashes of their numbers
needs none, and is the same in whatever block a row is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, UInt64

from models.config import ModelConfig, SplitTime
from models.exceptions import Stopped
from models.features.clock import microseconds
from models.features.columns import Columns, select_rows
from models.features.row_weights import UsableRows, check_enough
from models.randomness import derive_seed

_CELLS = 2**22  # of a block: some 32 MiB of numbers, several times that of texts
_MAX_ROWS = 2**16  # blocks have fixed sizes, so that sums do not depend on the memory
_TIMES = 1_000_000  # of more rows a sample: its quantiles are off by 0.1 % of the rows
_STEP, _FIRST, _SECOND = (
    np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


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
        return UsableBlock(self.rows[chosen], select_rows(self.columns, chosen), self.left_out)


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
            usable = UsableRows.of(columns, config.target, config.weight)
            rows = first + np.arange(len(usable.index))
            first += len(rows)
            yield UsableBlock(rows, select_rows(columns, usable.index), usable)


@dataclass(frozen=True)
class Survey:
    """Counts of rows, and the times of a sample of the usable ones in increasing order."""

    usable: int
    without_target: int
    of_weight_0: int
    times: Float[np.ndarray, "some"] | None = None


def survey(table: Table) -> Survey:
    """Count the rows of a table.

    Raises:
        InvalidData: if too few are usable.
        Stopped: between two blocks.
    """
    config, split = table.config, table.config.training.split
    names = [split.time] if isinstance(split, SplitTime) else []
    rate = _TIMES / max(1, table.blocks.num_rows)
    usable, without_target, of_weight_0 = 0, 0, 0
    times: list[np.ndarray] = []
    for block in table.usable(names):
        usable += len(block.rows)
        without_target += block.left_out.without_target
        of_weight_0 += block.left_out.of_weight_0
        if isinstance(split, SplitTime):
            sampled = row_uniforms(block.rows, config.training.seed, "times") < rate
            times.append(as_numbers(block.columns[split.time][sampled]))
    check_enough(usable, config.weight)
    ordered = np.sort(np.concatenate(times)) if times else None
    return Survey(usable, without_target, of_weight_0, ordered)


def as_numbers(times: np.ndarray) -> Float[np.ndarray, "rows"]:
    """Times as numbers in their order; a missing one is the latest, as in memory."""
    is_date = np.issubdtype(times.dtype, np.datetime64)
    numbers = microseconds(times) if is_date else times.astype(np.float64)
    return np.where(np.isnan(numbers), np.inf, numbers)


def row_hashes(
    rows: Int[np.ndarray, "rows"], seed: int, purpose: str
) -> UInt64[np.ndarray, "rows"]:
    """A hash of each row's number, independent for each seed and purpose.

    Source: SplitMix64 (Steele, Lea and Flood 2014, *Fast splittable pseudorandom number
    generators*).
    """
    mixed = rows.astype(np.uint64) * _STEP + np.uint64(derive_seed(seed, purpose))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def row_uniforms(
    rows: Int[np.ndarray, "rows"], seed: int, purpose: str
) -> Float[np.ndarray, "rows"]:
    """A number of [0, 1) for each row."""
    return (row_hashes(rows, seed, purpose) >> np.uint64(11)) * 2.0**-53


def group_uniforms(groups: np.ndarray, seed: int, purpose: str) -> Float[np.ndarray, "rows"]:
    """A number of [0, 1) for each row, the same for all rows of a group."""
    distinct, places = np.unique(groups.astype(str), return_inverse=True)
    uniforms = [derive_seed(seed, purpose, group) / 2.0**63 for group in distinct.tolist()]
    return np.array(uniforms, np.float64)[places]
