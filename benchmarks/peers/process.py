"""Starts a library's `child` process, sends it requests, and stops it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from benchmarks.peers import environments

ROOT = Path(__file__).parents[2]
START_SECONDS = 120
# As in the service, idle threads sleep. By default they spin, and then small operations are 100
# times slower when other processes run on the machine.
SETTING = {"OMP_WAIT_POLICY": "PASSIVE"}
STOP_SECONDS = 5


class PeerFailed(Exception):
    """A child ended or did not respond in time."""


@dataclass(frozen=True)
class Peer:
    """A measured library: its module here and its environment."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    environment: str | None = None  # None: this project's
    loops: bool = True  # its time is proportional to the samples

    @property
    def python(self) -> str:
        """Raises `NotInstalled`."""
        own = self.environment is None
        return sys.executable if own else str(environments.python(str(self.environment)))


PEERS = {
    peer.name: peer
    for peer in (
        Peer("credence", "credence", ("own",), loops=False),
        Peer("credence, new seed", "credence", ("new",), loops=False),
        Peer("one forward", "forward", loops=False),
        Peer("torchbnn", "torchbnn", environment="torchbnn"),
        Peer("bayesian-torch", "bayesian_torch", ("Reparameterization",), "bayesian-torch"),
        Peer("bayesian-torch, Flipout", "bayesian_torch", ("Flipout",), "bayesian-torch"),
        Peer("blitz", "blitz", environment="blitz-bayesian-pytorch"),
        Peer("posteriors, vmap", "posteriors", environment="posteriors"),
    )
}


class Child:
    """A running peer."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process = process
        self._name = name
        self.versions: dict[str, str] = self._response(START_SECONDS)["ready"]

    def run(
        self, network: str, rows: int, samples: int, calls: int, timeout_seconds: float
    ) -> list[float]:
        """Milliseconds of each of several sequential calls.

        Raises:
            PeerFailed: there is no response in time; the child is then stopped.
        """
        request = {"network": network, "rows": rows, "samples": samples, "calls": calls}
        try:
            _pipe(self._process.stdin).write(json.dumps(request) + "\n")
            _pipe(self._process.stdin).flush()
        except BrokenPipeError as error:
            raise PeerFailed(f"{self._name} has ended") from error
        return list(self._response(timeout_seconds)["milliseconds"])

    def _response(self, timeout_seconds: float) -> dict[str, Any]:
        timer = Timer(timeout_seconds, self._process.kill)
        timer.start()
        line = _pipe(self._process.stdout).readline()
        timer.cancel()
        if not line:
            raise PeerFailed(f"{self._name} ended, or gave no response in {timeout_seconds:.0f} s")
        return dict(json.loads(line))


@contextmanager
def running(peer: Peer, threads: int, log: Path) -> Iterator[Child]:
    """Start a child; stop it after the block.

    Raises:
        NotInstalled: the peer has no environment.
        PeerFailed: it does not start.
    """
    module = f"benchmarks.peers.{peer.module}"
    command = [peer.python, "-m", module, str(threads), *peer.arguments]
    setting = {**os.environ, **SETTING}
    pipe = subprocess.PIPE
    with (
        log.open("a") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=setting, stdin=pipe, stdout=pipe, stderr=errors, text=True
        ) as process,
    ):
        try:
            yield Child(process, peer.name)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    """Close standard input, so that the child ends. Kill it if it is still computing."""
    try:
        _pipe(process.stdin).close()
        process.wait(STOP_SECONDS)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        process.kill()


def _pipe(stream: Any) -> Any:
    assert stream is not None
    return stream
