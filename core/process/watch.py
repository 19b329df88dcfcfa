"""Finds values that have not changed for some time, by this process's monotonic clock.

Wall clocks differ between machines and jump; a monotonic clock does neither. DynamoDB's lock client
finds lost owners in the same way: a lease is over when its record has not changed for as long as
the lease lasts, by the clock of the process that wants to take it.
"""

import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Watch(Generic[Key, Value]):
    """Remembers since when each key has had its value. The caller decides how often to look."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: dict[Key, tuple[Value, float]] = {}

    def unchanged(self, present: Mapping[Key, Value]) -> dict[Key, Value]:
        """The keys of `present` that have had the same value for `seconds` or longer."""
        moment, before = self._clock(), self._since
        self._since = {
            key: before[key] if key in before and before[key][0] == value else (value, moment)
            for key, value in present.items()
        }
        return {
            key: value
            for key, (value, since) in self._since.items()
            if moment - since >= self._seconds
        }

    def forget(self) -> None:
        """Start again, after a time in which values could not be read."""
        self._since = {}
