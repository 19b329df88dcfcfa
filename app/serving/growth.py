"""How far a batch grows on this device, from the times of a few sizes, measured on load.

On a processor with 784-400-400-10 and 100 samples, ms per row in batches of n rows: 3.2 (n=1), 2.2
(2), 1.8 (4), 1.5 (8), 1.5 (32), 2.0 (128). On a GPU hundreds of rows take hardly longer than one.
This module reads no clock.
"""

from collections.abc import Callable, Mapping

STEP = 8  # between two sizes
UNMEASURED_ROWS = 8  # on a processor; see above
# Sizes that may take longer are not measured, so that loading stays fast. From there on
# `Throughput` learns from the batches themselves.
LONGEST_SECONDS = 0.005
_GAIN = 0.8  # of the time per row: times vary by less


def measure(seconds_of: Callable[[int], float]) -> dict[int, float]:
    """Seconds of 1, 8, 64, … rows: of 8 in any case, of more while they are quickly measured.

    Eight times the rows take at most eight times as long, which decides before they are computed.
    """
    curve = {1: seconds_of(1), STEP: seconds_of(STEP)}
    while STEP * curve[rows := max(curve)] <= LONGEST_SECONDS:
        curve[STEP * rows] = seconds_of(STEP * rows)
        if not _is_cheaper(curve, rows):
            break
    return curve


def rows_worth_joining(curve: Mapping[int, float]) -> int:
    """The rows up to which a larger batch takes clearly less time per row.

    Beyond it, joining requests only makes each wait for the others.

    >>> rows_worth_joining({1: 3.2, 8: 12.0, 64: 96.0})
    8
    >>> rows_worth_joining({1: 1.0, 8: 8.0})
    1
    """
    sizes = sorted(curve)
    for rows in sizes[:-1]:
        if not _is_cheaper(curve, rows):
            return rows
    return sizes[-1]


def _is_cheaper(curve: Mapping[int, float], rows: int) -> bool:
    """Whether a row of the next size takes clearly less time."""
    return curve[STEP * rows] < _GAIN * STEP * curve[rows]
