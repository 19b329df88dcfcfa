"""A check between two fits."""

from collections.abc import Callable

from models.exceptions import Stopped

ShouldStop = Callable[[], bool]


def check_stop(should_stop: ShouldStop) -> None:
    """Raise `Stopped` if the job must stop."""
    if should_stop():
        raise Stopped
