"""Which rows are learned from and which are held out, decided for each row by itself."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from models.config import SplitBy, SplitTime, TrainingConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.effects import FOLDS as EFFECT_FOLDS
from models.features.splits import Division
from models.tabular.streaming.blocks import UsableBlock
from models.tabular.streaming.hashing import group_uniforms, row_uniforms
from models.tabular.streaming.survey import Survey, as_numbers

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
        return np.searchsorted(ends, self._places(block.rows, block.columns), side="right")

    def folds(self, block: UsableBlock) -> Int[np.ndarray, "rows"]:
        """The fold of each row: random, the same for a group, or a part of the time."""
        training, count = self.training, self.num_folds
        match training.split:
            case SplitBy(by=name):
                place = group_uniforms(block.columns[name], training.seed, "folds")
            case "random":
                place = row_uniforms(block.rows, training.seed, "folds")
            case _:
                place = self._places(block.rows, block.columns) / (1 - sum(self.shares))
        return (place * count).astype(np.int64).clip(0, count - 1)

    @property
    def num_folds(self) -> int:
        return self.training.folds or EFFECT_FOLDS

    def _places(self, rows: Int[np.ndarray, "rows"], columns: Columns) -> Float[np.ndarray, "rows"]:
        match self.training.split:
            case SplitBy(by=name):
                return group_uniforms(columns[name], self.training.seed, "split")
            case SplitTime(time=name):
                times = self.survey.times
                assert times is not None, "the survey reads them"
                return np.searchsorted(times, as_numbers(columns[name])) / len(times)
            case "last":
                return rows / self.survey.usable
        return row_uniforms(rows, self.training.seed, "split")


def division_of(sets: Int[np.ndarray, "rows"]) -> Division:
    """The row numbers of each set."""
    training, stopping, calibration, scores = (np.flatnonzero(sets == i) for i in range(4))
    return Division(training, stopping, calibration, scores)
