"""The second pass: a sample of the rows, all held-out rows, and exact statistics of the columns.

Each row's set is decided by itself (`Sets`). A sample may lack the only missing value of a column,
its extremes, or a rare class: the first row of each is kept (`_Witnesses`), so that encoders and
targets know all that the table has.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from models.card import ColumnTotals
from models.config import SplitBy, SplitTime, TrainingConfig
from models.exceptions import InvalidData
from models.features.columns import Columns, convert, join_rows, select_rows
from models.features.splits import EFFECT_FOLDS, Division
from models.features.targets import MAX_CLASSES, present, target_type
from models.tabular.streaming.blocks import (
    Survey,
    Table,
    UsableBlock,
    as_numbers,
    group_uniforms,
    row_uniforms,
)

MOST_SAMPLED = 1_000_000  # shares of rows are known to 0.05 % then
MOST_HELD_OUT = 200_000  # rows of a set: a mean over them has 0.2 % of a row's standard deviation
MAX_COUNTED = 2**17  # levels of a column
_LEAST_SAMPLED = 20_000
_BYTES_PER_CELL = 64  # a value, with what the fits of encoders copy
TRAINING, STOPPING, CALIBRATION, SCORES = range(4)


@dataclass(frozen=True)
class Sets:
    """The set of each row follows from its place in [0, 1): the last places are held out.

    The place is random, the same for a group, or the share of rows that are earlier. Every set has
    its share of the places. So the sets have about their sizes, groups stay together, and the
    latest rows are scored, as `models.features.splits` does in memory.

    Args:
        shares: of the rows that choose the epoch, that calibrate and that are scored.
    """

    training: TrainingConfig
    survey: Survey
    shares: tuple[float, float, float]

    @classmethod
    def of(cls, training: TrainingConfig, survey: Survey, most: int) -> "Sets":
        """The configured shares, each of at most `most` rows.

        Raises:
            InvalidData: if nothing is left to learn from.
        """
        wanted = (
            training.stopping_fraction or 0.0,
            training.calibration_fraction or 0.0,
            training.validation_fraction,
        )
        if sum(wanted) >= 1:
            raise InvalidData(
                f"the fractions that are held out add up to {sum(wanted):g}, which leaves no rows "
                "to learn from: lower them",
                "/training/validation_fraction",
            )
        stopping, calibration, scores = (min(share, most / survey.usable) for share in wanted)
        return cls(training, survey, (stopping, calibration, scores))

    def of_rows(self, block: UsableBlock) -> Int[np.ndarray, "rows"]:
        """The number of each row's set, in the order of the constants of this module."""
        ends = 1 - np.cumsum(self.shares[::-1])[::-1]
        return np.searchsorted(ends, self._places(block), side="right")

    def folds(self, block: UsableBlock) -> Int[np.ndarray, "rows"]:
        """The fold of each row: random, the same for a group, or a part of the time."""
        training, count = self.training, self.num_folds
        match training.split:
            case SplitBy(by=name):
                place = group_uniforms(block.columns[name], training.seed, "folds")
            case "random":
                place = row_uniforms(block.rows, training.seed, "folds")
            case _:
                place = self._places(block) / (1 - sum(self.shares))
        return (place * count).astype(np.int64).clip(0, count - 1)

    @property
    def num_folds(self) -> int:
        return self.training.folds or EFFECT_FOLDS

    def _places(self, block: UsableBlock) -> Float[np.ndarray, "rows"]:
        match self.training.split:
            case SplitBy(by=name):
                return group_uniforms(block.columns[name], self.training.seed, "split")
            case SplitTime(time=name):
                times = self.survey.times
                assert times is not None, "the survey reads them"
                return np.searchsorted(times, as_numbers(block.columns[name])) / len(times)
            case "last":
                return block.rows / self.survey.usable
        return row_uniforms(block.rows, self.training.seed, "split")


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


def gather(table: Table, types: Mapping[str, str], sets: Sets, limits: Limits) -> Gathered:
    """Read all columns once.

    Raises:
        InvalidData: if the target has too many classes.
        Stopped: between two blocks.
    """
    config, seed = table.config, table.config.training.seed
    witnesses = _Witnesses(config.target, is_number=config.task == "regression")
    kind = target_type(config.task, types[config.target])
    features = [
        ColumnTotals(feature.name, "feature", feature.type, MAX_COUNTED)
        for feature in config.features or ()
    ]
    target = ColumnTotals(config.target, "target", kind, MAX_COUNTED)
    rate = limits.sampled / sets.survey.usable
    kept: list[Columns] = []
    kept_sets: list[np.ndarray] = []
    kept_folds: list[np.ndarray] = []
    learned = 0
    for block in table.usable(config.columns):
        of_rows, folds = sets.of_rows(block), sets.folds(block)
        is_learned = of_rows == TRAINING
        chosen = ~is_learned | (row_uniforms(block.rows, seed, "sample") < rate)
        kept.append(select_rows(block.columns, chosen))
        kept_sets.append(of_rows[chosen])
        kept_folds.append(folds[chosen])
        to_learn = block.part(is_learned)
        witnesses.look(to_learn, folds[is_learned])
        learned += len(to_learn.rows)
        for total in features:
            total.add(convert(to_learn.columns[total.name], types[total.name], total.type))
        target.add(to_learn.columns[target.name])
    rows = {row.number: row for row in witnesses.rows.values()}
    numbers = np.array(sorted(rows), np.int64)
    unsampled = numbers[row_uniforms(numbers, seed, "sample") >= rate]
    more = [rows[number] for number in unsampled.tolist()]
    kept += [row.columns for row in more]
    of_kept = np.concatenate([*kept_sets, np.full(len(more), TRAINING)])
    return Gathered(
        join_rows(kept),
        Division(*(np.flatnonzero(of_kept == i) for i in range(4))),
        np.concatenate([*kept_folds, np.array([row.fold for row in more], np.int64)]),
        learned,
        (*features, target),
    )


@dataclass(frozen=True)
class _Row:
    """A row by its number among the usable ones, and its fold."""

    number: int
    fold: int
    columns: Columns


_Places = Iterator[tuple[tuple[str, Any], int]]
"""What rows of a block bear witness of, and their places in it."""


@dataclass
class _Witnesses:
    """The rows so far, by what they bear witness of.

    Args:
        target: whose fractions or classes are kept.
        is_number: whether the target is a number.
    """

    target: str
    is_number: bool
    rows: dict[tuple[str, Any], _Row] = field(default_factory=dict)
    _extremes: dict[tuple[str, str], float] = field(default_factory=dict)

    def look(self, block: UsableBlock, folds: Int[np.ndarray, "rows"]) -> None:
        """Keep rows of a block of rows to learn from.

        Raises:
            InvalidData: if the target has more classes than a model may have.
        """
        for key, place in self._places(block.columns):
            row = {name: values[place : place + 1].copy() for name, values in block.columns.items()}
            self.rows[key] = _Row(int(block.rows[place]), int(folds[place]), row)
        if sum(name == "class" for name, _ in self.rows) > MAX_CLASSES:
            raise InvalidData(
                f"the target has more than {MAX_CLASSES} classes; classification needs 2 to "
                f"{MAX_CLASSES}",
                "/target",
            )

    def _places(self, columns: Columns) -> _Places:
        target = columns[self.target]
        if not len(target):
            return
        for name, values in columns.items():
            known = present(values)
            yield from self._first("missing", name, ~known)
            if values.dtype != object and known.any():
                yield from self._beyond(name, values, known)
        if self.is_number:
            yield from self._first("fraction", self.target, target != np.round(target))
            return
        distinct, places = np.unique(target.astype(str), return_index=True)
        for text, place in zip(distinct.tolist(), places.tolist(), strict=True):
            if ("class", text) not in self.rows:
                yield ("class", text), place

    def _first(self, what: str, name: str, has: Bool[np.ndarray, "rows"]) -> _Places:
        if (what, name) not in self.rows and has.any():
            yield (what, name), int(has.argmax())

    def _beyond(self, name: str, values: np.ndarray, known: Bool[np.ndarray, "rows"]) -> _Places:
        """The rows of a new least or greatest value."""
        numbers = as_numbers(values)
        for side, sign in (("least", 1.0), ("greatest", -1.0)):
            signed = np.where(known, sign * numbers, np.inf)
            place = int(signed.argmin())
            if signed[place] < self._extremes.get((name, side), np.inf):
                self._extremes[name, side] = float(signed[place])
                yield (side, name), place
