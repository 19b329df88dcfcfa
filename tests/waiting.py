"""Waits whose end says that something never happens, and for servers on free ports."""

import os
import socket
import time
from collections.abc import Callable

import pytest

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


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for_port(port: int, seconds: float = 120.0) -> None:
    """Return when a server listens on the port; skip the test if none comes up."""
    try:
        wait_until(lambda: _is_open(port), seconds)
    except AssertionError:
        pytest.skip(f"no server came up on port {port}")


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
