"""Finds values that have not changed for some time, by this process's monotonic clock.

Wall clocks differ between machines, and jump. A lease has ended when its record has not changed for
the length of the lease, by the clock of the process that wants to take it. Source: DynamoDB's lock
client.
"""

import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Watch(Generic[Key, Value]):
    """Remembers since when each key has had its value. The caller reads the values regularly."""

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
        """Forget all values. Call it after a time in which values could not be read."""
        self._since = {}
