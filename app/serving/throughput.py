"""Estimates the seconds of computations from earlier ones, and the size of slices."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

from app.serving.growth import UNMEASURED_ROWS

# Measured with one thread, ms per row. 784-400-400-10 with 100 samples: 14 alone, 1.6 in slices of
# 32 rows (50 ms), 3.3 in one of 256. 13-50-2 with 10,000 samples: 21 alone, 7 in slices of 16
# (108 ms), 15 in one of 256. So slices of this length do not make a request slower.
SLICE_SECONDS = 0.1
LEARNING_RATE = 0.2  # of an exponential moving average: the last few computations count
LOWERING = 0.9  # per refusal: seven refusals halve an estimate


@dataclass(frozen=True)
class _Mean:
    """The mean rows, samples and seconds of computations of about the same size."""

    rows: float
    samples: float
    seconds: float

    def towards(self, rows: float, samples: float, seconds: float) -> "_Mean":
        return _Mean(
            self.rows + LEARNING_RATE * (rows - self.rows),
            self.samples + LEARNING_RATE * (samples - self.samples),
            self.seconds + LEARNING_RATE * (seconds - self.seconds),
        )

    def bound(self, rows: int, samples: int) -> float:
        """An upper bound on the seconds of another size.

        It assumes that a larger computation is not slower per row or sample, and that a smaller one
        is not slower in total.
        """
        seconds = self.seconds  # without `max`, which takes most of the time of each admission
        if rows > self.rows:
            seconds *= rows / self.rows
        return seconds * samples / self.samples if samples > self.samples else seconds


class Throughput:
    """Estimates the seconds of a computation from its key, rows and samples.

    Sizes are grouped by powers of two. The mean of each group gives an upper bound for any other
    size (`_Mean.bound`); the estimate is the least bound. Any thread may read and write, because
    values are replaced and not changed: at worst an observation is lost.
    """

    def __init__(self) -> None:
        self._means: dict[Hashable, dict[tuple[int, int], _Mean]] = {}
        self._worth_joining: dict[Hashable, int] = {}

    def observe(self, key: Hashable, rows: int, samples: int, seconds: float) -> None:
        """Learn from a computation."""
        means, size = self._means.get(key, {}), (rows.bit_length(), samples.bit_length())
        mean = means.get(size, _Mean(rows, samples, seconds))
        self._means[key] = means | {size: mean.towards(rows, samples, seconds)}

    def knows(self, key: Hashable) -> bool:
        """Whether there are observations of a key."""
        return key in self._means

    def seconds(self, key: Hashable, rows: int, samples: int) -> float:
        """The estimate for `rows` × `samples` in one computation; 0 without observations."""
        means = self._means.get(key)
        return min([mean.bound(rows, samples) for mean in means.values()]) if means else 0.0

    def keep_growth(self, key: Hashable, rows: int) -> None:
        """Keep the rows up to which larger batches of a key take less time per row."""
        self._worth_joining[key] = rows

    def rows_worth_joining(self, key: Hashable) -> int:
        """The rows that `keep_growth` kept."""
        return self._worth_joining.get(key, UNMEASURED_ROWS)

    def lower(self, key: Hashable) -> None:
        """Lower the estimates after a refusal, so that after several ones a request is tried again.

        Refused requests are not measured, so an estimate that is too high would never change.
        """
        means = self._means.get(key, {})
        self._means[key] = {
            size: _Mean(mean.rows, mean.samples, LOWERING * mean.seconds)
            for size, mean in means.items()
        }


def rows_of_slice(key: Hashable, rows: int, samples: int, throughput: Throughput) -> int | None:
    """The rows of a slice; None if the whole request fits into one slice.

    A slice takes at most `SLICE_SECONDS`, or 1.5 times as long as one row if that is longer. It has
    at least one row. It has more if most of the time does not depend on the number of rows, such as
    for draws of all weights.
    """
    seconds = partial(throughput.seconds, key, samples=samples)
    most = max(SLICE_SECONDS, 1.5 * seconds(1))
    if seconds(rows) <= most:
        return None
    powers = (2**k for k in range(rows.bit_length()))
    return max(n for n in powers if n == 1 or seconds(n) <= most)
