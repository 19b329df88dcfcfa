"""The columns of series one after the other, with the step and the series of each row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from models.features.columns import Columns
from models.forecasting.histories.filling import MOST_MISSING
from models.forecasting.series import Series


@dataclass(frozen=True)
class Stacked:
    """The columns of series one after the other.

    Args:
        begins: as of a panel.
        step: the number of each row's step within its series.
        series: the number of each row's series.
    """

    columns: Columns
    begins: Int64[np.ndarray, "bounds"]
    step: Int64[np.ndarray, "rows"]
    series: Int64[np.ndarray, "rows"]

    @classmethod
    def of(cls, series: Sequence[Series]) -> "Stacked":
        columns = {
            name: np.concatenate([one.columns[name] for one in series])
            for name in series[0].columns
        }
        lengths = np.array([len(one) for one in series])
        begins = np.concatenate([[0], np.cumsum(lengths)])
        number = np.repeat(np.arange(len(series)), lengths)
        return cls(columns, begins, np.arange(begins[-1]) - begins[number], number)

    def rows(self, chosen: np.ndarray) -> Columns:
        """The columns of these rows."""
        return {name: column[chosen] for name, column in self.columns.items()}

    def between(self, firsts: np.ndarray, stops: np.ndarray) -> Bool[np.ndarray, "rows"]:
        """Whether each row is of a step from its series' first to before its stop."""
        return (self.step >= firsts[self.series]) & (self.step < stops[self.series])

    def whole_windows(self, values: np.ndarray, span: int) -> Bool[np.ndarray, "rows"]:
        """Whether each row is known and has `span` steps of its series before it that can be read.

        The last of them is known, and not too many are missing
        (`models.forecasting.histories.filling`).
        """
        missing = np.isnan(values)
        before = np.concatenate([[0], np.cumsum(missing)])
        has_past = (self.step >= span) & ~missing & ~np.concatenate([[True], missing[:-1]])
        start = np.where(has_past, np.arange(len(values)) - span, 0)
        return has_past & (before[:-1] - before[start] <= MOST_MISSING * span)
