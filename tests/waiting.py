"""Waits whose end says that something never happens, and how slow the machine is now."""

import os
import time
from collections.abc import Callable

PATIENCE = 900.0  # seconds for what takes some: on a busy machine a start took 300


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Return when the condition holds; fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


def slowness() -> float:
    """How many processes share a core, over the last minute: what takes a second takes so many."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
