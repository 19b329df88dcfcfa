"""Schedules of requests and statistics of their outcomes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one request.

    Args:
        seconds: from the due time (closed loop: from sending) to the complete response.
        failure: None for status 200, else the status or error: the request is not answered.
        lateness: seconds from the due time until a connection has the request: the generator's.
    """

    seconds: float
    failure: str | None = None
    lateness: float = 0.0

    @property
    def latency(self) -> float:
        return self.seconds if self.failure is None else math.inf


@dataclass(frozen=True)
class Summary:
    """Statistics of a run. A percentile is None if too many requests were not answered."""

    offered: float | None  # requests per second; None in a closed loop
    throughput: float  # answered requests per second
    requests: int
    failures: dict[str, int]
    milliseconds: dict[str, float | None]
    lateness_ms: float = 0.0  # 99th percentile


def arrivals(rate: float, seconds: float, seed: int = 0) -> list[float]:
    """Scheduled times of requests: a Poisson process of `rate` per second.

    Independent users cause bursts; evenly spaced requests would favour servers without a queue.
    The gaps are scaled so that there are exactly rate × seconds requests.
    """
    count = max(1, round(rate * seconds))
    gaps = np.random.default_rng(seed).exponential(size=count + 1)
    times = np.cumsum(gaps)
    return [float(time) for time in times[:-1] / times[-1] * seconds]


def percentile(values: Sequence[float], fraction: float) -> float:
    """The smallest value that this fraction of all values does not exceed (nearest rank).

    >>> percentile([4.0, 1.0, 2.0, 3.0], 0.5)
    2.0
    """
    if not values:
        return math.inf
    rank = max(1, math.ceil(fraction * len(values) - 1e-9))  # 0.07 × 100 is slightly more than 7
    return sorted(values)[rank - 1]


def summarise(outcomes: Sequence[Outcome], seconds: float, offered: float | None) -> Summary:
    """Compute percentiles over all requests; a failed one has infinite latency."""
    latencies = [outcome.latency for outcome in outcomes]
    failures = Counter(o.failure for o in outcomes if o.failure is not None)
    return Summary(
        offered=offered,
        throughput=(len(outcomes) - failures.total()) / seconds,
        requests=len(outcomes),
        failures=dict(failures),
        milliseconds={name: _milliseconds(latencies, q) for name, q in QUANTILES.items()},
        lateness_ms=1000 * percentile([o.lateness for o in outcomes] or [0.0], 0.99),
    )


def _milliseconds(latencies: Sequence[float], fraction: float) -> float | None:
    seconds = percentile(latencies, fraction)
    return None if math.isinf(seconds) else 1000 * seconds
