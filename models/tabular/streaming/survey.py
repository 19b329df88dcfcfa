"""The first pass: how many rows are usable, and when they were measured."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from models.config import ModelConfig, SplitBy, SplitTime
from models.exceptions import InvalidData
from models.features.numbers import microseconds
from models.features.usable import left_out_rows
from models.tabular.recipe import MIN_ROWS
from models.tabular.streaming.blocks import Table
from models.tabular.streaming.hashing import row_uniforms

_TIMES = 1_000_000  # of more rows a sample: its quantiles are off by 0.1 % of the rows


@dataclass(frozen=True)
class Survey:
    """Counts of rows, and the times of a sample of the usable ones in increasing order."""

    usable: int
    without_target: int
    of_weight_0: int
    times: Float[np.ndarray, "some"] | None = None

    @property
    def notes(self) -> Iterator[str]:
        """What is left out, for a version's notes."""
        if self.without_target:
            yield left_out_rows(self.without_target, "without a target")
        if self.of_weight_0:
            yield left_out_rows(self.of_weight_0, "of weight 0")


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
            some = row_uniforms(block.rows, config.training.seed, "times") < rate
            times.append(as_numbers(block.columns[split.time][some]))
    if usable < MIN_ROWS:
        weighed = "" if config.weight is None else " and a weight above 0"
        raise InvalidData(
            f"{usable} rows have a target{weighed}; at least {MIN_ROWS} are needed", "/dataset"
        )
    found = np.sort(np.concatenate(times)) if times else None
    return Survey(usable, without_target, of_weight_0, found)


def as_numbers(times: np.ndarray) -> Float[np.ndarray, "rows"]:
    """Times as numbers in their order; a missing one is the latest, as in memory."""
    is_date = np.issubdtype(times.dtype, np.datetime64)
    numbers = microseconds(times) if is_date else times.astype(np.float64)
    return np.where(np.isnan(numbers), np.inf, numbers)


def split_column(config: ModelConfig) -> str | None:
    """The column of a split by group or time."""
    match config.training.split:
        case SplitBy(by=name) | SplitTime(time=name):
            return name
    return None
