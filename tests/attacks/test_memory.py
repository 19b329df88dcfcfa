"""Small requests of a real service that ask for much memory, by bodies that inflate or answers.

Each is bounded by its bytes, what the service holds for it is measured, and nothing is lost: the
cursors lead through all that the pages leave out.
"""

import gzip
import io
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.paging import MAX_PAGE_BYTES
from credence.client import Client
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


MOST_MEMORY = 2**28  # more than before, while answers are written
CELL = 8 * 2**20
OTHERS = 6
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def wide(unbounded: Service) -> str:
    """A data set of 3,000 columns with long names."""
    header = ",".join([*wide_names(), "y"])
    rows = (",".join(str((i * row) % 7) for i in range(3001)) for row in range(1, 41))
    made = answered(upload(unbounded.url, "wide", "\n".join([header, *rows, ""]).encode()), 201)
    return str(made.json()["id"])


def wide_names() -> list[str]:
    return [f"c{number:05d}".ljust(200, "n") for number in range(3000)]


def get(url: str) -> bytes:
    answer = answered(httpx.get(url, timeout=280))
    return answer.content


def test_rows_of_huge_cells(unbounded: Service) -> None:
    """895 bytes of Parquet were answered with 210 MB."""
    file = io.BytesIO()
    table = pa.table({"text": ["x" * CELL] * 10, "kind": ["a"] * 10})
    pq.write_table(table, file, compression="zstd", store_schema=False)
    made = answered(
        upload(unbounded.url, "huge", file.getvalue(), **{"Content-Type": PARQUET}), 201
    )
    url = f"{unbounded.url}/datasets/{made.json()['id']}/rows?limit=1000"
    before = memory(unbounded, "VmHWM")
    with ThreadPoolExecutor(OTHERS) as clients:
        pages = list(clients.map(get, [url] * OTHERS))
    assert max(map(len, pages)) <= MAX_PAGE_BYTES + 100
    assert memory(unbounded, "VmHWM") - before < MOST_MEMORY
    with Client(unbounded.url) as client:
        rows = client.dataset_rows(made.json()["id"], 1000)
    assert len(rows) == 10
    told = f"… ({CELL} bytes)"
    assert all(row["text"] == "x" * (2**19) + told and row["kind"] == "a" for row in rows)


def test_the_list_of_jobs_with_long_requests(unbounded: Service, wide: str) -> None:
    """40 jobs were answered with 93 MB."""
    body = {"dataset": wide, "target": "y", "features": wide_names(), "training": {"epochs": 1}}
    url, made = f"{unbounded.url}/jobs", []
    for number in range(3):
        answer = httpx.post(
            f"{unbounded.url}/train", json=body | {"model": f"m{number}"}, timeout=280
        )
        assert answer.status_code == 202, answer.text[:500]
        made.append(answer.json()["id"])
        assert httpx.post(f"{url}/{made[-1]}/cancel", timeout=280).status_code == 200
    answer = httpx.get(f"{url}?limit=1000", timeout=280)
    assert len(answer.content) < 10_000
    listed: list[Any] = answer.json()["data"]
    assert [(job["id"], job["request"]) for job in listed] == [(id_, {}) for id_ in reversed(made)]
    whole = httpx.get(f"{url}/{made[0]}", timeout=280).json()
    assert len(whole["request"]["features"]) == 3000
