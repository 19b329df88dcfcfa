"""Has a model trained by several processes, under torch's own launcher, and follows them.

The worker itself keeps what belongs to the job (lease, progress, publication) and computes nothing.
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
from worker.exchange import Exchange
from worker.order import Order

_POLL_SECONDS = 0.1
_STOP_SECONDS = 6.0  # the service gives a worker 10 to stop
_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


class ProcessLost(Exception):
    """A process of a training ended, or was killed, before the model was there."""


def processes_for(device: str, settings: Settings) -> int:
    """How many train one model on a device; each has a card of its own, and a named card is one."""
    if device == "cpu":
        return settings.train_processes
    return min(settings.train_processes, torch.cuda.device_count()) if device == "cuda" else 1


def train_together(
    order: Order,
    exchange: Exchange,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> None:
    """Carries out an order whose data are in the exchange's folder; then the model is there, too.

    Raises:
        InvalidData, Diverged, Stopped: as `models.training.train.train` does.
        MemoryError: if one of the processes ran out of memory.
        ProcessLost: if one ended otherwise; the checkpoints tell what was reached.
    """
    exchange.give(order)
    with _launched(order, exchange) as launcher:
        _follow(launcher, exchange, on_progress, should_stop)
    if exchange.has_ended():
        exchange.raise_ending()
    elif exchange.ran_out_of_memory():
        raise MemoryError
    else:
        raise ProcessLost(
            f"one of {order.processes} training processes was lost (the worker's log has more): "
            "resume the job to go on from its last checkpoint"
        )


def _follow(
    launcher: subprocess.Popen[bytes],
    exchange: Exchange,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> None:
    """Passes reports on and a wish to stop; who has not stopped in time leaves its checkpoint."""
    offset, deadline = 0, math.inf
    running = True
    while running:
        with suppress(subprocess.TimeoutExpired):
            launcher.wait(_POLL_SECONDS)
        running = launcher.returncode is None
        reports, offset = exchange.reports(offset)
        for progress in reports:
            on_progress(progress)
        if deadline == math.inf and should_stop():
            exchange.ask_to_stop()
            deadline = time.monotonic() + _STOP_SECONDS
        if running and time.monotonic() > deadline:
            raise Stopped


@contextmanager
def _launched(order: Order, exchange: Exchange) -> Iterator[subprocess.Popen[bytes]]:
    """The launcher, in a process group that no Ctrl-C reaches; none of its processes stays behind.

    They all read this process's pipe, and end when it closes.
    """
    process = subprocess.Popen(  # noqa: S603 – our own command
        _command(exchange, order.processes),
        env=os.environ | {"OMP_NUM_THREADS": str(order.threads), "GLOO_SOCKET_IFNAME": _LOOPBACK},
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


def _command(exchange: Exchange, processes: int) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    options = ["--nproc-per-node", str(processes), "--log-dir", str(exchange.folder / "logs")]
    rank = ["-m", "worker.distributed", str(exchange.folder), "--stop-with-stdin"]
    return [*launcher, *options, *rank]
