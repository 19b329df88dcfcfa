"""Small bodies that ask for much memory, of a real service with a small budget."""

import gzip
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.app.running import answered
from tests.credence.running import Service, serving
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


pytestmark = pytest.mark.slow

BUDGET = 2**30
MOST_SECONDS = 1.0  # of the processor of the API, while somebody asks for /health/live
CSV = {"Content-Type": "text/csv"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, CREDENCE_MEMORY_BYTES=str(BUDGET)) as running:
        yield running


def memory(service: Service, name: str) -> int:
    """A line of the process's status in bytes: `VmRSS`, or `VmHWM`, the peak of it."""
    status = Path(f"/proc/{service.process.pid}/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith(f"{name}:")]
    return 1024 * int(line.split()[1])


def upload(url: str, name: str, body: bytes, **headers: str) -> httpx.Response:
    address = f"{url}/datasets?name={name}"
    return httpx.post(address, content=body, headers=CSV | headers, timeout=280)


def zeros(first: int) -> bytes:
    """A megabyte that inflates to 45 million rows; `first` makes it another data set."""
    return gzip.compress(b"a\n%d\n" % first + b"0\n" * 45_000_000, 1)


def test_four_bombs_at_once_stay_within_the_budget(service: Service) -> None:
    """Without a budget they took 17 GB, and the kernel ended the service."""
    before = memory(service, "VmRSS")
    bodies = [zeros(i) for i in range(4)]
    with ThreadPoolExecutor(4) as clients:
        sent = [
            clients.submit(upload, service.url, f"x{i}", body, **{"Content-Encoding": "gzip"})
            for i, body in enumerate(bodies)
        ]
        answers = [one.result() for one in sent]
    assert {answer.status_code for answer in answers} <= {413, 503}
    assert all("CREDENCE_MEMORY_BYTES" in answer.json()["detail"] for answer in answers)
    assert all(int(a.headers["Retry-After"]) > 0 for a in answers if a.status_code == 503)
    assert memory(service, "VmHWM") - before < BUDGET
    reserved = 'credence_memory_reserved_bytes{use="uploads"} 0.0'
    assert reserved in httpx.get(f"{service.url}/metrics", timeout=120).text


@pytest.mark.timing
def test_a_wide_data_set_and_the_list_of_them(service: Service) -> None:
    """With 100,000 columns others waited for 8.6 s, and each list of its owner took 9.6 s."""
    width = 5_000
    names = ",".join(f"c{i}" for i in range(width))
    rows = "\n".join(",".join(str(i * 7 % (100 + row)) for i in range(width)) for row in range(20))
    with asking_throughout(service) as seconds:
        answered(upload(service.url, "wide", f"{names}\n{rows}\n".encode()), 201)
        [listed] = httpx.get(f"{service.url}/datasets", timeout=280).json()["data"]
    assert (listed["columns"], listed["num_columns"]) == ([], width)
    assert max(seconds) < MOST_SECONDS
