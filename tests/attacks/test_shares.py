"""A caller who asks for as much as it can beside others: none of them is locked out."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from core.context import open_context
from core.settings import load_settings
from tests.app.running import publish, regression_columns
from tests.attacks.conftest import ADMIN, Guarded, make_keys
from tests.credence.running import serving

ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]
LARGE = {"model": "price", "inputs": [ROW] * 150, "samples": 10_000}
SMALL = {"model": "price", "inputs": [ROW], "samples": 100}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service with keys and with a model that belongs to everybody."""
    directory = tmp_path_factory.mktemp("shared")
    file = directory / "key"
    file.write_text(ADMIN)
    made = make_keys(directory / "data")
    context = open_context(load_settings(data_dir=directory / "data"))
    publish(context, "price", regression_columns(), target="price")
    context.close()
    with serving(directory, CREDENCE_ADMIN_KEY_FILE=str(file)) as running:
        yield Guarded(running, **made)


@pytest.mark.timing
def test_one_key_does_not_occupy_the_engine(guarded: Guarded) -> None:
    """Five connections that send a large request whenever theirs is answered or refused."""
    is_over, seen, lock = threading.Event(), Counter[int](), threading.Lock()

    def send() -> None:
        with guarded.client(guarded.anna) as client:
            while not is_over.is_set():
                status = client.post("/predict", json=LARGE).status_code
                with lock:
                    seen[status] += 1
                is_over.wait(0.05)

    with ThreadPoolExecutor(5) as pool, guarded.client(guarded.eve) as client:
        assert client.post("/predict", json=SMALL).status_code == 200
        sent = [pool.submit(send) for _ in range(5)]
        try:
            statuses = Counter(
                client.post("/predict", json=SMALL | {"seed": seed}).status_code
                for seed in range(40)
            )
            large = client.post("/predict", json=LARGE | {"samples": 2000})
        finally:
            is_over.set()
        for one in sent:
            one.result()
    assert statuses == {200: 40}
    assert large.status_code == 200, large.text
    assert set(seen) <= {200, 503}
    assert seen[200] >= 1, "whoever asks for much gets what the others leave"


def test_what_an_answer_takes_is_counted(guarded: Guarded) -> None:
    """Of 15 kB of rows: 41 s of intervals, or 80 MB of draws."""
    body = {"model": "price", "inputs": [ROW] * 1000, "samples": 10_000}
    with guarded.client(guarded.eve) as client:
        for more, limit in (
            ({"intervals": [i / 17 for i in range(1, 17)]}, "CREDENCE_MAX_WORK"),
            ({"density": {"points": 512}}, "CREDENCE_MAX_WORK"),
            ({"return_draws": True, "samples": 4000}, "CREDENCE_MAX_ANSWER_BYTES"),
        ):
            response = client.post("/predict", json=body | more)
            assert response.status_code == 413
            assert limit in response.json()["detail"]


def test_many_jobs_of_one_owner_delay_the_first_of_another_by_one(guarded: Guarded) -> None:
    data = {"columns": {"x": [float(i) for i in range(40)], "y": [2.0 * i for i in range(40)]}}

    def train(client: httpx.Client, model: str) -> dict[str, Any]:
        body = {"model": model, "target": "y", "data": data, "training": {"epochs": 5000}}
        response = client.post("/train", json=body)
        assert response.status_code == 202, response.text
        return dict(response.json())

    with guarded.client(guarded.anna) as anna, guarded.client(guarded.ben) as ben:
        many = [train(anna, "many")["id"] for _ in range(40)]
        one = train(ben, "one")
        last = anna.get(f"/jobs/{many[-1]}").json()["queue_position"]
        assert one["queue_position"] in {1, 2}
        assert last >= 39
        for client, ids in ((ben, [one["id"]]), (anna, many)):
            for job_id in reversed(ids):
                client.post(f"/jobs/{job_id}/cancel")
