"""The scores of a simple method, which anyone could have had on the same rows."""

from dataclasses import dataclass
from typing import Literal

from models.config import Json
from models.config.ranges import Count, NotNegative, Number

BaselineKind = Literal["constant", "linear", "boosted_trees"]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A simple method that learned from a model's rows and was scored on its held-out rows.

    Args:
        metrics: named as those of a variant.
        seconds: that it took to learn and to predict.
        rows: that it learned from; a large table is thinned.
        advantage: how much better the full model's proper score is, per row: CRPS of numbers, log
            likelihood of classes; below 0 the method is better. None in older releases.
        advantage_error: the standard error of this paired difference; None for one row.
    """

    kind: BaselineKind
    metrics: Json
    seconds: NotNegative
    rows: Count
    advantage: Number | None = None
    advantage_error: NotNegative | None = None
