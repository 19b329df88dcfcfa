"""Sums of a forecast as arrays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import ndarray

    from credence.client.prediction import Interval, Prediction

PREFIX = "total_"  # of the columns
GROUP = "group"  # the column with the names of groups of series, whose rows come last


@dataclass(frozen=True)
class Totals:
    """The sum from a forecast's first step to each step; the last is that of the whole horizon."""

    prediction: "Prediction"

    @property
    def mean(self) -> "ndarray":
        """Predicted sums."""
        return self.prediction[f"{PREFIX}mean"]

    @property
    def median(self) -> "ndarray":
        """Values that the sum is below or above with equal probability."""
        return self.prediction[f"{PREFIX}median"]

    @property
    def deviation(self) -> "ndarray":
        """Standard deviation of the sum, in the target's unit."""
        return self.prediction[f"{PREFIX}deviation"]

    @property
    def groups(self) -> "Mapping[str, Prediction]":
        """The forecast of each group of series by its name: of each step, and its `totals`.

        Raises:
            ValueError: the prediction was made without groups; the message says how to.
        """
        if not self.prediction.of_groups:
            hint = 'totals={"groups": ["region"]}, or {"groups": {"north": ["a", "b"]}}'
            raise ValueError(f"the totals have no groups: predict with {hint}")
        return self.prediction.of_groups

    @property
    def mc_error(self) -> "ndarray":
        """Standard error of `mean` from finite sampling; NaN where it cannot be estimated."""
        return self.prediction[f"{PREFIX}mc_error"]

    def interval(self, level: float = 0.9, kind: str = "credible") -> "Interval":
        """Bounds that contain the sum with probability `level`, `credible` or `conformal`.

        Raises:
            ValueError: this level was not requested; the message names those that were.
        """
        return self._columns.interval(level, kind)

    def quantile(self, p: float) -> "ndarray":
        """The value that the sum is at most with probability `p`, one of the request.

        Raises:
            ValueError: this probability was not requested; the message names those that were.
        """
        return self._columns.quantile(p)

    def exceeds(self, threshold: float) -> "ndarray":
        """The probability that the sum is above a threshold of `totals`, such as the stock.

        Raises:
            ValueError: this threshold was not requested; the message says how to.
        """
        name = f"{PREFIX}exceeds_{float(threshold)}"
        if name not in self.prediction.table.column_names:
            hint = f'predict with totals={{"exceeds": [{threshold}]}}'
            raise ValueError(f"the totals do not have the threshold {threshold}; {hint}")
        return self.prediction[name]

    @property
    def _columns(self) -> "Prediction":
        """A prediction that has the columns of the sums as its own."""
        of = self.prediction
        return type(of)(of.table.under(PREFIX), None, of.restore)
