"""Pauses within predictions that take long and cannot be cut into rows.

A forecast of one series, or a long text, is one row. Its model calls `Pause` between two steps, and
whoever waits for the same thread may compute something then.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

Pause = Callable[[], None]


def go_on() -> None:
    """Do nothing: nobody waits."""


@runtime_checkable
class Pausing(Protocol):
    """A model that pauses. Nothing that runs meanwhile changes its result."""

    def predict_pausing(self, x: Any, options: Any, pause: Pause) -> Any:
        """As `predict_rows`."""
        ...
