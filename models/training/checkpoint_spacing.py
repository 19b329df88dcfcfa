"""How often a training writes a checkpoint: as often as its cost allows.

A checkpoint of a small model takes milliseconds, one of a large model seconds. So the time between
two follows from what the last one took, within bounds on the work that a lost process repeats.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHORTEST_SECONDS = 5.0  # less work is not worth a checkpoint
COST_SHARE = 0.01  # of the time of a training is for checkpoints, unless this were too seldom:
REPEATED_SECONDS, REPEATED_SHARE = 8.0, 0.04  # the most work between two, whichever is more
MOST_COST_SHARE = 0.1  # however much would be repeated
LONGEST_SECONDS = 300.0


def interval(cost_seconds: float, elapsed_seconds: float, longest_seconds: float) -> float:
    """Seconds from the end of a checkpoint to the next one.

    With the time of a mini-batch and of the checkpoint itself, a lost process repeats at most 10 s
    or 5 % of its work, whichever is more, if a checkpoint takes less than 0.8 s.

    Args:
        cost_seconds: what the last one took, written and uploaded.
        elapsed_seconds: since the training began.
        longest_seconds: the upper bound, whatever the others say.
    """
    cheap = cost_seconds / COST_SHARE
    repeated = max(REPEATED_SECONDS, REPEATED_SHARE * elapsed_seconds)
    bounded = max(min(cheap, repeated), SHORTEST_SECONDS, cost_seconds / MOST_COST_SHARE)
    return min(bounded, longest_seconds)


class CheckpointSpacing:
    """When the next checkpoint of a training is due; the first one soon after its start."""

    def __init__(self, longest_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest, self._clock = longest_seconds, clock
        self._begun = self._last = clock()
        self._interval = interval(0.0, 0.0, longest_seconds)

    def is_due(self) -> bool:
        return self._clock() - self._last >= self._interval

    @contextmanager
    def measured(self) -> Iterator[None]:
        """A block that makes a checkpoint, whose time decides when the next one is due."""
        started = self._clock()
        yield
        self._last = self._clock()
        cost, elapsed = self._last - started, self._last - self._begun
        self._interval = interval(cost, elapsed, self._longest)

    def postpone(self) -> None:
        """Count from now: a checkpoint was made for another reason."""
        self._last = self._clock()
