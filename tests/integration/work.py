"""Work that is given to a stack, and clients that ask for predictions all the time."""

import csv
import io
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

from tests.integration.stack import wait_until

FINAL = ("succeeded", "failed", "cancelled")
ROWS = 400


def upload(http: httpx.Client) -> str:
    """y = 3 x0 − x1 with noise; the id of the data set."""
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, 2))
    y = 3 * x[:, 0] - x[:, 1] + random.normal(0, 0.1, ROWS)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["x0", "x1", "y"])
    writer.writerows([*row, target] for row, target in zip(x.tolist(), y.tolist(), strict=True))
    answer = http.post(
        "/datasets",
        params={"name": "line"},
        content=text.getvalue(),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


def train(http: httpx.Client, dataset: str, model: str, epochs: int = 5, **more: Any) -> str:
    """Queue a small training job; its id."""
    training = {"epochs": epochs, "patience": epochs, "refit": False} | more
    body = {
        "model": model,
        "dataset": dataset,
        "target": "y",
        "network": {"hidden": [8]},
        "training": training,
        "pruning": [],
    }
    answer = http.post("/train", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def wait(http: httpx.Client, job: str, seconds: float = 180, *statuses: str) -> dict[str, Any]:
    """The job once it has ended, or has one of the statuses; outages on the way are waited for."""
    wanted = statuses or FINAL

    def arrived() -> dict[str, Any] | None:
        try:
            answer = http.get(f"/jobs/{job}")
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success and answer.json()["status"] in wanted else None

    found: dict[str, Any] = wait_until(arrived, seconds, f"job {job} to be one of {wanted}")
    return found


def predict(http: httpx.Client, model: str, **options: Any) -> dict[str, Any]:
    """Two rows, predicted."""
    body = {"model": model, "inputs": [{"x0": 1.0, "x1": 0.5}, {"x0": -1.0, "x1": 2.0}], **options}
    answer = http.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


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
