"""Exact statistics of the columns of many rows, added up block by block."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from models.features.columns import level_text
from models.features.targets import present
from models.training.card import MAX_LEVELS, ColumnSummary, by_frequency

MAX_COUNTED = 2**17  # levels of a column that are counted; later ones of more are not


@dataclass
class ColumnTotals:
    """What the blocks of one column had so far.

    Means and squares are merged as by Chan, Golub and LeVeque 1979 (*Updating formulae and a
    pairwise algorithm for computing sample variances*), so that no large numbers cancel.
    """

    name: str
    role: Literal["feature", "target"]
    type: str
    rows: int = 0
    missing: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of deviations from the mean
    low: float | np.datetime64 | None = None
    high: float | np.datetime64 | None = None
    levels: Counter[str] = field(default_factory=Counter)

    def add(self, values: np.ndarray) -> None:
        """Add the values of a block, in the type that the column is read as."""
        known = values[present(values)]
        self.missing += len(values) - len(known)
        if not len(known) or self.type == "text":
            return
        if self.type in ("category", "boolean"):
            self._count(known)
            return
        low, high = known.min(), known.max()
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        if self.type == "number":
            self._add_moments(known)

    @property
    def summary(self) -> ColumnSummary:
        """As `models.training.card` makes it of all rows at once."""
        common = ColumnSummary(name=self.name, role=self.role, type=self.type, missing=self.missing)
        if self.levels:
            levels = by_frequency(self.levels)
            most = MAX_LEVELS if self.role == "feature" else len(levels)
            return replace(common, levels=levels[:most], num_levels=len(levels))
        if self.low is None or self.high is None:
            return common
        if isinstance(self.low, np.datetime64) and isinstance(self.high, np.datetime64):
            low, high = (np.datetime_as_string(v, unit="s") for v in (self.low, self.high))
            return replace(common, min=f"{low}Z", max=f"{high}Z")
        std = math.sqrt(self.squares / self.rows)
        return replace(common, min=float(self.low), max=float(self.high), mean=self.mean, std=std)

    def _count(self, known: np.ndarray) -> None:
        values = known.astype(bool) if self.type == "boolean" else known
        for level, rows in Counter(values.tolist()).items():
            text = level_text(level)
            if text in self.levels or len(self.levels) < MAX_COUNTED:
                self.levels[text] += rows

    def _add_moments(self, known: np.ndarray) -> None:
        count, mean = len(known), float(known.mean(dtype=np.float64))
        squares = float(np.square(known - mean).sum())
        total, apart = self.rows + count, mean - self.mean
        self.squares += squares + apart**2 * self.rows * count / total
        self.mean += apart * count / total
        self.rows = total
