"""How long computing will take, learned from what was computed, and how much to do at a time."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

# Measured with one thread, per row: 784-400-400-10 with 100 samples 14 ms alone, 1.6 ms in slices
# of 32 (50 ms), 3.3 in one of 256; 13-50-2 with 10,000 samples 21 ms alone, 7 in slices of 16
# (108 ms), 15 in one of 256. So slices this long cost nothing.
SLICE_SECONDS = 0.1
LEARNING_RATE = 0.2  # of a moving average: the last few computations count
DOUBT = 0.9  # seven refusals halve the time that is believed in


@dataclass(frozen=True)
class _Mean:
    """Computations of about one size, on average."""

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
        """More is never slower per row or per sample than less, and less never slower than more."""
        return self.seconds * max(1.0, rows / self.rows) * max(1.0, samples / self.samples)


class Throughput:
    """Seconds by rows and samples, for each key: whatever has a speed of its own.

    Sizes are grouped by powers of two, and each of them bounds what any other may take: the
    least of these bounds is the estimate. Nothing is assumed of how costs add up.
    Values are replaced whole, so that any thread may read and write; at worst one is lost.
    """

    def __init__(self) -> None:
        self._means: dict[Hashable, dict[tuple[int, int], _Mean]] = {}

    def observe(self, key: Hashable, rows: int, samples: int, seconds: float) -> None:
        """Learn from a computation."""
        means, size = self._means.get(key, {}), (rows.bit_length(), samples.bit_length())
        mean = means.get(size, _Mean(rows, samples, seconds))
        self._means[key] = means | {size: mean.towards(rows, samples, seconds)}

    def seconds(self, key: Hashable, rows: int, samples: int) -> float:
        """What `rows` × `samples` will take at once; 0 while nothing is known."""
        means = self._means.get(key, {}).values()
        return min((mean.bound(rows, samples) for mean in means), default=0.0)

    def doubt(self, key: Hashable) -> None:
        """Believe in less time: what is refused is never measured, and must be tried again."""
        means = self._means.get(key, {})
        self._means[key] = {
            size: _Mean(mean.rows, mean.samples, DOUBT * mean.seconds)
            for size, mean in means.items()
        }


def rows_of_slice(key: Hashable, rows: int, samples: int, throughput: Throughput) -> int | None:
    """How many rows of a large request are computed before others have their turn; None: all.

    Where one row alone takes longer than a slice should, the slice takes half as long again as one
    row: it is one row, unless most of that time is spent once for all rows, such as on draws of
    whole weights.
    """
    seconds = partial(throughput.seconds, key, samples=samples)
    most = max(SLICE_SECONDS, 1.5 * seconds(1))
    if seconds(rows) <= most:
        return None
    powers = (2**k for k in range(rows.bit_length()))
    return max(n for n in powers if n == 1 or seconds(n) <= most)
