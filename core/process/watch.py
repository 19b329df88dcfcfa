"""What has stayed the same for some time, by the steady clock of the process that looks.

Wall clocks differ between machines and jump; what one process has seen, and for how long, does
neither. DynamoDB's lock client finds lost owners in the same way: a lease is over when its record
has not changed for as long as the lease lasts, by the clock of whoever wants to take it.
"""

import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Watch(Generic[Key, Value]):
    """Remembers since when each key has had its value; how often to look is the caller's choice."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: dict[Key, tuple[Value, float]] = {}

    def unchanged(self, present: Mapping[Key, Value]) -> dict[Key, Value]:
        """Of what is there now, all that was there with the same value `seconds` ago, and since."""
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
        """Begin anew: who could not look has not seen that nothing changed."""
        self._since = {}
