"""Does what the first training of a process would wait for, while the worker is idle."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

IDLE_SECONDS = 2.0  # after the start, so that it slows down neither that nor a short-lived worker


def prepare() -> None:
    """Make an optimiser: at the first one torch imports its compiler, which takes 1.7 s."""
    torch.optim.Adam([torch.zeros(1)])


@contextmanager
def preparing() -> Iterator[None]:
    """Prepare in a thread, unless the worker stops first.

    A training that begins meanwhile waits for what is left of the import.
    """
    timer = threading.Timer(IDLE_SECONDS, prepare)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
