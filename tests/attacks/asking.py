"""How long others wait while a service is attacked, on a machine that may be busy."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import psutil

from tests.credence.running import Service
from tests.waiting import wait_until


@contextmanager
def asking_throughout(service: Service) -> Iterator[Sequence[float]]:
    """Ask /health/live during the block, and note what each answer took.

    In processor seconds of the API, between question and answer: a busy machine adds nothing to
    them, and neither do child processes; a thread that keeps the interpreter does. A service that
    has just started first loads what it needs for its first predictions.
    """
    process, seconds, done = psutil.Process(service.process.pid), list[float](), threading.Event()

    def used() -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    def is_idle() -> bool:
        before = used()
        time.sleep(0.2)
        return used() - before < 0.05

    def ask() -> None:
        with httpx.Client(base_url=service.url, timeout=280) as http:
            while not done.wait(0.005):
                before = used()
                assert http.get("/health/live").status_code == 200
                seconds.append(used() - before)

    wait_until(is_idle)
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seconds
    finally:
        done.set()
        thread.join()
