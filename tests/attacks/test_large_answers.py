"""Small requests whose answers were huge: lists, rows, pages, and a body that inflates.

Each is bounded by its bytes, what the service holds for it is measured, and nothing is lost: the
cursors lead through all that the pages leave out.
"""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.paging import MAX_PAGE_BYTES
from credence.client import Client
from tests.app.running import answered
from tests.attacks.test_memory import memory, upload
from tests.credence.running import Service, serving

pytestmark = pytest.mark.slow

MOST_MEMORY = 2**28  # more than before, while answers are written
CELL = 8 * 2**20
OTHERS = 6
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def wide(service: Service) -> str:
    """A data set of 3,000 columns with long names."""
    header = ",".join([*wide_names(), "y"])
    rows = (",".join(str((i * row) % 7) for i in range(3001)) for row in range(1, 41))
    made = answered(upload(service.url, "wide", "\n".join([header, *rows, ""]).encode()), 201)
    return str(made.json()["id"])


def wide_names() -> list[str]:
    return [f"c{number:05d}".ljust(200, "n") for number in range(3000)]


def get(url: str) -> bytes:
    answer = answered(httpx.get(url, timeout=280))
    return answer.content


def test_rows_of_huge_cells(service: Service) -> None:
    """895 bytes of Parquet were answered with 210 MB."""
    file = io.BytesIO()
    table = pa.table({"text": ["x" * CELL] * 10, "kind": ["a"] * 10})
    pq.write_table(table, file, compression="zstd", store_schema=False)
    made = answered(upload(service.url, "huge", file.getvalue(), **{"Content-Type": PARQUET}), 201)
    url = f"{service.url}/datasets/{made.json()['id']}/rows?limit=1000"
    before = memory(service, "VmHWM")
    with ThreadPoolExecutor(OTHERS) as clients:
        pages = list(clients.map(get, [url] * OTHERS))
    assert max(map(len, pages)) <= MAX_PAGE_BYTES + 100
    assert memory(service, "VmHWM") - before < MOST_MEMORY
    with Client(service.url) as client:
        rows = client.dataset_rows(made.json()["id"], 1000)
    assert len(rows) == 10
    told = f"… ({CELL} bytes)"
    assert all(row["text"] == "x" * (2**19) + told and row["kind"] == "a" for row in rows)


def test_the_list_of_jobs_with_long_requests(service: Service, wide: str) -> None:
    """40 jobs were answered with 93 MB."""
    body = {"dataset": wide, "target": "y", "features": wide_names(), "training": {"epochs": 1}}
    url, made = f"{service.url}/jobs", []
    for number in range(3):
        answer = httpx.post(
            f"{service.url}/train", json=body | {"model": f"m{number}"}, timeout=280
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
