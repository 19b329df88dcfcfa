"""Wait for a condition, with an end for when it never comes true."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Return when the condition holds; fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
