"""Starts, measures and stops a server and its child processes."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
STOP_SECONDS = 10.0


class Server:
    """A process and its descendants."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def tree(self) -> list[psutil.Process]:
        """The process and its descendants, parents first."""
        try:
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cpu_seconds(self) -> float:
        """Processor time of the whole tree so far."""
        total = 0.0
        for process in self.tree():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def stop(self) -> None:
        """Terminate the process, wait, and kill what remains of the tree."""
        tree = self.tree()
        self._signal(tree[:1], signal.SIGTERM)
        _, left = psutil.wait_procs(tree, timeout=STOP_SECONDS)
        self._signal(left, signal.SIGKILL)
        self._process.wait()

    @staticmethod
    def _signal(processes: Iterable[psutil.Process], number: int) -> None:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str], port: int, log: Path
) -> Iterator[Server]:
    """Run the command as a server on this port; stop it after the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches the benchmark, which stops its servers
        )
    server = Server(process, port)
    try:
        yield server
    finally:
        server.stop()


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports
