"""How far products in bfloat16 move a version's answers, measured when it is trained."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge

from models.prediction.summary import Summary

ROWS = 24
OLD_WEIGHTS = 2**16  # what release 0.1 rounded
# The largest shift ÷ Monte-Carlo error of 100 independent samples: then it is also hidden by the
# error of as many Sobol points, which is up to ten times smaller.
_MAX_SHARE = 0.1


@dataclass(frozen=True)
class Rounding:
    """Shifts of the answers beside the Monte-Carlo errors of 100 independent samples.

    All are root mean squares over held-out rows (and classes), in predictive standard deviations.

    Args:
        mean, deviation: shift of the predicted mean (of classes: probability), and of the
            predictive standard deviation.
        error_of_mean, error_of_deviation: their Monte-Carlo errors.
        weights: of the smallest layer that is rounded.
    """

    mean: float
    deviation: float
    error_of_mean: float
    error_of_deviation: float
    weights: Annotated[int, Ge(1)] = OLD_WEIGHTS

    @property
    def is_hidden(self) -> bool:
        """Whether both shifts are at most a tenth of the errors."""
        return (
            self.mean <= _MAX_SHARE * self.error_of_mean
            and self.deviation <= _MAX_SHARE * self.error_of_deviation
        )


def measure(exact: Summary, rounded: Summary, weights: int) -> Rounding | None:
    """Compare two summaries of the same rows and samples; None where no deviation is finite.

    Args:
        exact: by float32, with the error of every output.
        rounded: by bfloat16.
        weights: as of `Rounding`.
    """
    before, after = (
        np.sqrt(one["aleatoric_variance"] + one["epistemic_variance"]) for one in (exact, rounded)
    )
    error = exact.errors["total_variance"] / 2  # of the deviation s it is that of s² ÷ 2s
    known = np.isfinite(before + after + error) & (before > 0)
    if not known.any():
        return None

    def size(values: np.ndarray) -> float:
        return float(np.sqrt(np.square((values / before)[known]).mean()))

    with np.errstate(divide="ignore", invalid="ignore"):
        return Rounding(
            size(rounded["mean"] - exact["mean"]),
            size(after - before),
            size(exact.errors["mean"]),
            size(error / before),
            weights,
        )
