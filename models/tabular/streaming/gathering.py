"""The second pass: a sample of the rows, all held-out rows, and exact statistics of the columns."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from models.features.columns import Columns, convert
from models.features.splits import Division
from models.tabular.streaming.blocks import Table
from models.tabular.streaming.hashing import row_uniforms
from models.tabular.streaming.sets import TRAINING, Sets, division_of
from models.tabular.streaming.summaries import ColumnTotals
from models.tabular.streaming.survey import split_column
from models.tabular.streaming.witnesses import Witnesses, joined

MOST_SAMPLED = 1_000_000  # shares of rows are known to 0.05 % then
MOST_HELD_OUT = 200_000  # rows of a set: a mean over them has 0.2 % of a row's standard deviation
_LEAST_SAMPLED = 20_000
_BYTES_PER_CELL = 64  # a value, with what the fits of encoders copy


@dataclass(frozen=True)
class Gathered:
    """The rows that are kept in memory.

    Args:
        columns: a sample of the training rows, all held-out rows, and witnesses.
        division: their sets.
        folds: the fold of each.
        learned: rows of the table to learn from.
        totals: of the rows to learn from, by column: features, then the target.
    """

    columns: Columns
    division: Division
    folds: Int[np.ndarray, "rows"]
    learned: int
    totals: tuple[ColumnTotals, ...]


@dataclass(frozen=True)
class Limits:
    """How many rows are kept in memory."""

    sampled: int
    held_out: int

    @classmethod
    def of(cls, memory_bytes: int, num_columns: int) -> "Limits":
        rows = memory_bytes // (2 * _BYTES_PER_CELL * num_columns)
        sampled = min(MOST_SAMPLED, max(_LEAST_SAMPLED, rows))
        return cls(sampled, min(MOST_HELD_OUT, sampled // 2))


def gather(table: Table, types: Mapping[str, str], sets: Sets, limits: Limits) -> Gathered:
    """Read all columns once.

    Raises:
        InvalidData: if the target has too many classes.
        Stopped: between two blocks.
    """
    config, seed = table.config, table.config.training.seed
    witnesses = Witnesses(config.target, is_number=config.task == "regression")
    totals = begin_totals(table, types)
    rate = limits.sampled / sets.survey.usable
    kept: list[Columns] = []
    kept_sets: list[np.ndarray] = []
    kept_folds: list[np.ndarray] = []
    learned = 0
    for block in table.usable(needed_columns(table)):
        of_rows, folds = sets.of_rows(block), sets.folds(block)
        is_learned = of_rows == TRAINING
        chosen = ~is_learned | (row_uniforms(block.rows, seed, "sample") < rate)
        kept.append({name: values[chosen] for name, values in block.columns.items()})
        kept_sets.append(of_rows[chosen])
        kept_folds.append(folds[chosen])
        to_learn = block.part(is_learned)
        witnesses.look(to_learn, folds[is_learned])
        learned += len(to_learn.rows)
        add_totals(totals, types, to_learn.columns)
    more = witnesses.without(lambda rows: row_uniforms(rows, seed, "sample") < rate)
    kept += [row.columns for row in more]
    kept_sets.append(np.full(len(more), TRAINING))
    kept_folds.append(np.array([row.fold for row in more], np.int64))
    return Gathered(
        joined(kept),
        division_of(np.concatenate(kept_sets)),
        np.concatenate(kept_folds),
        learned,
        tuple(totals.values()),
    )


def needed_columns(table: Table) -> list[str]:
    """The names of features and target, and of the columns of weights, groups and split."""
    config = table.config
    names = [*(feature.name for feature in config.features or ()), config.target, config.weight]
    names += [split_column(config), config.training.groups]
    return list(dict.fromkeys(name for name in names if name is not None))


def begin_totals(table: Table, types: Mapping[str, str]) -> dict[str, ColumnTotals]:
    """Empty totals of the features and the target."""
    config = table.config
    totals = {f.name: ColumnTotals(f.name, "feature", f.type) for f in config.features or ()}
    kind = "boolean" if types[config.target] == "boolean" else "category"
    kind = "number" if config.task == "regression" else kind
    return totals | {config.target: ColumnTotals(config.target, "target", kind)}


def add_totals(
    totals: Mapping[str, ColumnTotals], types: Mapping[str, str], columns: Columns
) -> None:
    """Add the rows of a block."""
    for name, total in totals.items():
        is_feature = total.role == "feature"
        values = convert(columns[name], types[name], total.type) if is_feature else columns[name]
        total.add(values)
