"""What a simple method is given: rows to learn from, rows to predict, and when to stop."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int, Shaped

from worker.baselines.columns import Table, thin
from worker.baselines.stopping import ShouldStop, check_stop

MOST_ROWS = 50_000  # to learn from: ridge and trees then take seconds, and hardly gain from more


@dataclass(frozen=True, kw_only=True)
class Task:
    """A regression or classification.

    Args:
        truth: of the rows to learn from: numbers, or indices of classes.
        num_classes: None for numbers.
        weights: of the rows to learn from; None if all are 1.
        held_out_weights: of the rows to predict.
        groups: rows with equal values stay in one fold; None if there are no groups.
    """

    learned: Table
    truth: Shaped[np.ndarray, "learned"]
    held_out: Table
    num_classes: int | None = None
    weights: Float[np.ndarray, "learned"] | None = None
    held_out_weights: Float[np.ndarray, "held_out"] | None = None
    groups: Shaped[np.ndarray, "learned"] | None = None
    should_stop: ShouldStop = lambda: False

    def thinned(self, most: int) -> "Task":
        """The task with at most this many rows to learn from, evenly spread."""
        rows = thin(np.arange(len(self.learned)), most)
        if len(rows) == len(self.learned):
            return self
        return replace(
            self,
            learned=self.learned[rows],
            truth=self.truth[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def weights_of(self, rows: Int[np.ndarray, "some"] | slice) -> Float[np.ndarray, "some"] | None:
        """The weights of some rows to learn from."""
        return None if self.weights is None else self.weights[rows]

    def check_stop(self) -> None:
        """Raise `Stopped` if the job must stop. Called before every fit."""
        check_stop(self.should_stop)
