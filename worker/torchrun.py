"""Trains one model in several processes with torchrun.

The worker itself renews the lease, forwards progress, and publishes the model.
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
_STOP_SECONDS = 6.0  # the service gives a worker 10 s to stop
ENVIRONMENT = {
    "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
    "PYTHONSAFEPATH": "1",  # as -P, for the processes that torchrun starts
}


class ProcessLost(Exception):
    """A training process ended before the model was complete."""


def processes_for(device: str, settings: Settings) -> int:
    """The number of processes that train on a device. On CUDA each needs its own card."""
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
    """Run the training that the folder describes, and write the model into the folder.

    Args:
        threads: of each process.

    Raises:
        InvalidData, Diverged, Stopped: as `models.training.train.train`.
        MemoryError: a process ran out of memory.
        ProcessLost: a process ended in another way. The checkpoints remain.
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
            "resume the job to continue from its last checkpoint"
        )


def _follow(
    launcher: subprocess.Popen[bytes],
    folder: SharedFolder,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> None:
    """Forward progress from the processes, and a stop to them.

    Raises:
        Stopped: the processes did not stop in time. Their last checkpoint is used.
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
    """torchrun, in its own process group, so that it does not receive Ctrl-C.

    All its processes read a pipe from this process, and end when it closes.
    """
    process = subprocess.Popen(  # noqa: S603 – our own command
        _command(folder, processes),
        env=os.environ | ENVIRONMENT | {"OMP_NUM_THREADS": str(threads)},
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
    launcher = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone"]
    options = ["--nproc-per-node", str(processes), "--log-dir", str(folder.path / "logs")]
    return [*launcher, *options, "-m", "worker.rank", str(folder.path), "--stop-with-stdin"]
