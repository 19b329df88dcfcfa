"""What a series of observations does in the long run: its ends, its slope, and whether it grows.

Theil and Sen's slope is the median of the slopes of all pairs of points: a third of the points may
be anything. Its interval (Sen, 1968) takes the points as independent, which observations a few
seconds apart are not: so each point is the median of a block of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

BLOCKS = 24
CONFIDENCE = 0.99  # a dozen series are judged at once
HOUR, DAY = 3600.0, 24.0  # seconds; hours


@dataclass(frozen=True)
class Trend:
    """A series after the warm-up.

    Args:
        start, end: medians of the first and the last eighth of the blocks.
        slope: per hour, with its interval from `low` to `high`.
        late_low: as `low`, of the second half alone: what has come to rest has stopped growing.
    """

    start: float
    end: float
    slope: float
    low: float
    high: float
    late_low: float

    def grows(self, percent: float, least: float = 0.0) -> bool:
        """Whether it certainly grows, still does, and by more than that in a day.

        Args:
            percent: of the value at the start.
            least: growth in a day that is never too much, in the series' unit.
        """
        day = self.slope * DAY
        return self.low > 0 and self.late_low > 0 and day > max(percent / 100 * self.start, least)


def trend(seconds: Sequence[float], values: Sequence[float], quantile: float = 0.5) -> Trend:
    """The trend of values that were observed at these times.

    Args:
        quantile: what of each block counts; 0.99 for the latency of the slowest in a hundred.

    Raises:
        ValueError: there are fewer than four blocks with an observation.
    """
    times, points = blocks(seconds, values, quantile)
    if len(points) < 4:
        raise ValueError(f"{len(values)} observations in {len(points)} blocks: observe longer")
    eighth = max(1, len(points) // 8)
    slope, low, high = _slope(times, points)
    half = len(points) // 2
    return Trend(
        start=float(np.median(points[:eighth])),
        end=float(np.median(points[-eighth:])),
        slope=slope,
        low=low,
        high=high,
        late_low=_slope(times[half:], points[half:])[1],
    )


def blocks(
    seconds: Sequence[float], values: Sequence[float], quantile: float = 0.5, count: int = BLOCKS
) -> tuple[np.ndarray, np.ndarray]:
    """Median times in hours, and a quantile of the values, of equal stretches of time."""
    times, observed = np.asarray(seconds, float), np.asarray(values, float)
    width = (times[-1] - times[0]) / count or 1.0
    block = np.minimum((times - times[0]) // width, count - 1).astype(int)
    there = np.unique(block)
    middle = [np.median(times[block == number]) - times[0] for number in there]
    found = [np.quantile(observed[block == number], quantile) for number in there]
    return np.array(middle) / HOUR, np.array(found)


def _slope(times: np.ndarray, points: np.ndarray) -> tuple[float, float, float]:
    """Slope, and its interval; infinite where two points say nothing about it."""
    if len(points) < 3:
        return 0.0, -math.inf, math.inf
    found = stats.theilslopes(points, times, alpha=CONFIDENCE)
    return float(found.slope), float(found.low_slope), float(found.high_slope)
