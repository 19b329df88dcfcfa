"""How much of a large request is computed before others have their turn."""

from collections.abc import Hashable
from functools import partial

from app.serving.throughput import Throughput

# Measured with one thread, per row: 784-400-400-10 with 100 samples 14 ms alone, 1.6 ms in slices
# of 32 (50 ms), 3.3 in one of 256; 13-50-2 with 10,000 samples 21 ms alone, 7 in slices of 16
# (108 ms), 15 in one of 256. So slices this long cost nothing.
SLICE_SECONDS = 0.1


def rows_of_slice(key: Hashable, rows: int, samples: int, throughput: Throughput) -> int | None:
    """How many of the rows are computed at once; None if all of them are.

    Where one row alone takes longer than a slice should, so many that they take half as long again:
    one, unless most of that time is spent once for all rows, on draws of whole weights say.
    """
    seconds = partial(throughput.seconds, key, samples=samples)
    most = max(SLICE_SECONDS, 1.5 * seconds(1))
    if seconds(rows) <= most:
        return None
    return max(n for n in _powers_of_two(rows) if n == 1 or seconds(n) <= most)


def _powers_of_two(most: int) -> list[int]:
    return [2**k for k in range(most.bit_length())]
