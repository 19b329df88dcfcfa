"""Free ports of this machine, and servers that come up on them."""

import socket

import pytest

from tests.waiting import wait_until


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
