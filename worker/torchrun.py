"""Trains one model in several processes under torchrun, and follows them.

The worker itself only keeps the lease, passes progress on, and publishes.
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from core.settings import Settings
from models.exceptions import Stopped
from models.training.progress import Progress
from worker.shared_folder import SharedFolder

_POLL_SECONDS = 0.1
_STOP_SECONDS = 6.0  # the service gives a worker 10 to stop
_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


class ProcessLost(Exception):
    """A training process ended before the model was complete."""


def processes_for(device: str, settings: Settings) -> int:
    """How many processes train a model on a device. Each needs a card; a named card is one."""
    if device == "cpu":
        return settings.train_processes
    return min(settings.train_processes, torch.cuda.device_count()) if device == "cuda" else 1


def train_in_processes(
    folder: SharedFolder,
    processes: int,
    threads: int,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> None:
    """Trains what the folder describes; the model is in the folder afterwards.

    Args:
        threads: of each process.

    Raises:
        InvalidData, Diverged, Stopped: as `models.training.train.train` does.
        MemoryError: if one of the processes ran out of memory.
        ProcessLost: if one ended in any other way; the checkpoints hold what was reached.
    """
    with _launched(folder, processes, threads) as launcher:
        _follow(launcher, folder, on_progress, should_stop)
    if folder.has_outcome():
        folder.raise_outcome()
    elif folder.ran_out_of_memory():
        raise MemoryError
    else:
        raise ProcessLost(
            f"one of {processes} training processes was lost (the worker's log has more): "
            "resume the job to go on from its last checkpoint"
        )


def _follow(
    launcher: subprocess.Popen[bytes],
    folder: SharedFolder,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> None:
    """Passes progress on, and the request to stop.

    Raises:
        Stopped: if the processes have not stopped in time; their last checkpoint counts then.
    """
    offset, deadline = 0, math.inf
    running = True
    while running:
        with suppress(subprocess.TimeoutExpired):
            launcher.wait(_POLL_SECONDS)
        running = launcher.returncode is None
        reports, offset = folder.read_progress(offset)
        for progress in reports:
            on_progress(progress)
        if deadline == math.inf and should_stop():
            folder.request_stop()
            deadline = time.monotonic() + _STOP_SECONDS
        if running and time.monotonic() > deadline:
            raise Stopped


@contextmanager
def _launched(
    folder: SharedFolder, processes: int, threads: int
) -> Iterator[subprocess.Popen[bytes]]:
    """torchrun, in a process group that Ctrl-C does not reach.

    All its processes read this process's pipe, and end when it closes.
    """
    process = subprocess.Popen(  # noqa: S603 – our own command
        _command(folder, processes),
        env=os.environ | {"OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": _LOOPBACK},
        stdin=subprocess.PIPE,
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(folder: SharedFolder, processes: int) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    options = ["--nproc-per-node", str(processes), "--log-dir", str(folder.path / "logs")]
    return [*launcher, *options, "-m", "worker.rank", str(folder.path), "--stop-with-stdin"]
