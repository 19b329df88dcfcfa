"""Clients that ask for predictions all the time, and what they got."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

BODY = {"model": "steady", "inputs": [{"x0": 1.0, "x1": 0.5}]}
PAUSE_SECONDS = 0.05  # 20 requests a second by each client at most


@dataclass
class Asked:
    """How requests ended, by status (0: no answer), and the longest time without a good one."""

    statuses: Counter[int] = field(default_factory=Counter)
    longest_seconds: float = 0.0

    @property
    def failed(self) -> int:
        return self.statuses.total() - self.statuses[200]

    def __str__(self) -> str:
        return (
            f"{self.statuses[200]} predictions answered, {self.failed} not, longest pause "
            f"{self.longest_seconds:.1f} s"
        )


@contextmanager
def asking(*clients: httpx.Client) -> Iterator[Asked]:
    """Each client asks for one prediction after the other meanwhile."""
    asked, done, lock = Asked(), threading.Event(), threading.Lock()
    threads = [
        threading.Thread(target=_ask, args=(client, asked, done, lock)) for client in clients
    ]
    for thread in threads:
        thread.start()
    try:
        yield asked
    finally:
        done.set()
        for thread in threads:
            thread.join()


def _ask(client: httpx.Client, asked: Asked, done: threading.Event, lock: threading.Lock) -> None:
    good = time.monotonic()
    while not done.wait(PAUSE_SECONDS):
        try:
            status = client.post("/predict", json=BODY).status_code
        except httpx.TransportError:
            status = 0
        with lock:
            asked.statuses[status] += 1
            if status == 200:
                asked.longest_seconds = max(asked.longest_seconds, time.monotonic() - good)
                good = time.monotonic()
