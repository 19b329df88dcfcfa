"""Limits the predictions in flight to those that can be answered within the allowed wait.

`app.serving.admission` bounds the engine's queue. But with a small model, decoding and encoding
take longer than computing: requests then wait on the event loop and cannot be refused early.
So predictions are counted when they arrive, by caller: each may have as many in flight as are free
of twice the limit (see `Admission`), so that there is room for a caller who has none.
"""

from collections import Counter
from collections.abc import Hashable

MIN_REQUESTS = 64  # always admitted: so few do not show the pace
MAX_REQUESTS = 512  # larger batches gain nothing, and the measured pace may be outdated
WINDOW_SECONDS, WINDOW_RESPONSES = (
    0.25,
    32,
)  # responses come in bursts: one per turn of the event loop


class ConcurrencyLimit:
    """Counts predictions from their arrival to their response, and how quickly they finish."""

    def __init__(self, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._in_flight = 0
        self._own: Counter[Hashable] = Counter()
        self._seconds_each = 0.0
        self._finished, self._window_start = 0, 0.0

    @property
    def wait_seconds(self) -> float:
        """Time until all predictions in flight are answered, at the pace of the last window."""
        return self._in_flight * self._seconds_each

    def is_reached(self, caller: Hashable) -> bool:
        """Whether another prediction would wait too long, or be more than the caller's share."""
        both = self._in_flight + self._own[caller]
        is_slow = both * self._seconds_each > 2 * self._max_seconds
        return (is_slow and self._in_flight >= MIN_REQUESTS) or both >= 2 * MAX_REQUESTS

    def enter(self, now: float, caller: Hashable) -> None:
        """Count a prediction that arrives; the pace is measured only while some are in flight."""
        if not self._in_flight:
            self._finished, self._window_start = 0, now
        self._in_flight += 1
        self._own[caller] += 1

    def leave(self, now: float, caller: Hashable) -> None:
        """Count a prediction that is answered, or whose client has gone."""
        self._in_flight -= 1
        self._own[caller] -= 1
        if not self._own[caller]:
            del self._own[caller]
        self._finished += 1
        seconds = now - self._window_start
        if seconds >= WINDOW_SECONDS and self._finished >= WINDOW_RESPONSES:
            self._seconds_each = seconds / self._finished
            self._finished, self._window_start = 0, now
