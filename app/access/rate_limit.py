"""How many requests a key may make: a bucket of tokens for each, in this process.

Full it holds a second's worth, at least one; each request takes one, and they come back evenly.
Each process of the API counts for itself: a store that all shared would be asked before every
prediction.
"""

import math
from collections.abc import Callable
from time import monotonic

from core.exceptions import LimitReached

SECONDS_PER_MINUTE = 60.0


class RateLimit:
    """The buckets; of the event loop."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # by key: tokens, and when it had them

    def take(self, key: str, per_minute: int) -> None:
        """Take a token.

        Raises:
            LimitReached: there is none; the error tells when there will be one.
        """
        rate = per_minute / SECONDS_PER_MINUTE
        most, now = max(1.0, rate), self._clock()
        tokens, then = self._buckets.get(key, (most, now))
        tokens = min(most, tokens + rate * (now - then))
        if tokens < 1:
            self._buckets[key] = (tokens, now)
            raise LimitReached(
                f"this key may make {per_minute} requests a minute", math.ceil((1 - tokens) / rate)
            )
        self._buckets[key] = (tokens - 1, now)
