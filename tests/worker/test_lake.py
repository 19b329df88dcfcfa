"""A lake in a bucket from its first training to its scores, as an operator goes through it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credence.client import Client
from tests.core.webhooks.receiving import Receiving, receiver
from tests.credence.running import Service, serving
from tests.lake import TRAINING, Lake, running_lake, sales
from tests.waiting import wait_until

EVENTS = ["alias.moved", "gate.passed", "gate.refused"]
CHUNK = 250  # rows of a part


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with running_lake(tmp_path) as lake:
        yield lake


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    with receiver() as got:
        yield got


@pytest.fixture
def service(tmp_path: Path, lake: Lake, receiving: Receiving) -> Iterator[Service]:
    rules = f"private+http://127.0.0.1:{receiving.port}"
    settings = lake.settings(tmp_path / "sources.toml") | {"CREDENCE_WEBHOOKS": rules}
    with serving(tmp_path, **settings) as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


@pytest.mark.slow
@pytest.mark.training
@pytest.mark.timeout(900)  # three trainings and 16 parts, on a busy machine
def test_a_lake_is_learned_again_through_a_gate_and_scored_through_a_kill(
    lake: Lake, service: Service, client: Client, receiving: Receiving
) -> None:
    lake.add("a", sales(0, 600, woods=("oak", "elm")))
    first = client.read_source("sales", lake.uri, secret="lake")
    assert (first["rows"], first["source"]["snapshot"]["num_files"]) == (600, 1)
    train = {"model": "price", "dataset": first["id"], "alias": "champion", **TRAINING}
    client.finished(client.submit_train(train)["id"])
    hook = client.add_webhook(f"http://127.0.0.1:{receiving.port}/", EVENTS)
    receiving.secret = hook["secret"]
    gate = {"max_loss": 0.05, "min_coverage": 0.5}
    client.create_schedule("fresh", train, on="refresh", gate=gate)

    lake.add("b", sales(600, 1400))  # with a wood that version 1 does not know
    second = client.refresh(first["id"])
    assert (second["rows"], second["refreshed_from"]) == (2000, first["id"])
    passed = run_of(client, 1)
    assert (passed["status"], passed["version"]) == ("passed", 2), passed["outcome"]
    assert (passed["outcome"]["rows_are"], passed["outcome"]["champion"]) == ("new", 1)

    lake.add("c", sales(2000, 1200, sign=-1.0))  # an export that went wrong, ...
    lake.add("d", sales(3200, 800))  # ... and the newest rows, which are right
    third = client.refresh(second["id"])
    assert (third["rows"], third["refreshed_from"]) == (4000, second["id"])
    refused = run_of(client, 2)
    assert (refused["status"], refused["version"]) == ("refused", 3), refused["outcome"]
    assert "its log likelihood is worse by -" in refused["outcome"]["reason"]
    assert client.version("price", "champion")["version"] == 2
    assert client.version("price", 3)["dataset"] == third["id"]
    wait_until(lambda: len(receiving.messages) == 3)
    assert sorted(receiving.types) == sorted(EVENTS)
    told = {content["type"]: content["data"] for _, content in receiving.messages}
    assert (told["alias.moved"]["version"], told["alias.moved"]["previous_version"]) == (2, 1)
    assert told["gate.refused"]["reason"] == refused["outcome"]["reason"]

    score_through_a_kill(lake, service, client)


def run_of(client: Client, number: int) -> Any:
    """The schedule's run with this number, once it has ended."""
    ended = ("passed", "refused", "failed", "cancelled", "unchanged")

    def runs() -> list[Any]:
        found = client.schedule("fresh")["runs"]
        return [run for run in found if run["status"] in ended]

    wait_until(lambda: len(runs()) >= number)
    return runs()[0]


def score_through_a_kill(lake: Lake, service: Service, client: Client) -> None:
    request = {
        "model": "price",
        "version": "champion",
        "source": {"uri": lake.uri, "secret": "lake"},
        "destination": {"uri": "s3://lake/scored/all", "secret": "lake"},
        "keep": ["key"],
        "samples": 2000,
        "sampler": "monte_carlo",
        "seed": 7,
        "chunk_rows": CHUNK,
    }
    job = client.submit_batch(request)
    wait_until(lambda: len(lake.parts("all")) >= 2)
    service.worker().kill()
    assert len(lake.parts("all")) < 4000 // CHUNK, "the worker was killed too late"
    done = client.finished(job["id"])
    assert (done["progress"]["row"], done["progress"]["rows"]) == (4000, 4000)
    found = lake.predictions("all")
    assert found["key"].to_pylist() == list(range(4000))
    rows = lake.rows.sort_by("key")
    online = client.predict(
        "price",
        rows.slice(0, 200).select(["size", "wood"]).to_pydict(),
        version="champion",
        samples=2000,
        sampler="monte_carlo",
        seed=7,
    )
    np.testing.assert_allclose(found["mean"][:200], online.mean, rtol=1e-6, atol=1e-6)
