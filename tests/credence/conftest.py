"""One service for all tests of this package, and one small model in it."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from credence.client import Client
from credence.types import Version
from tests.core.webhooks.receiving import Receiving, receiver
from tests.credence.running import Service, serving

TINY = {"network": {"hidden": [8]}, "training": {"epochs": 5}, "pruning": [0.5]}


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the service may read, with a file of two rows in `pair`."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / "pair").mkdir()
    (folder / "pair" / "a.csv").write_text("x;y\n1,5;2\n3,5;4\n")
    return folder


@pytest.fixture(scope="session")
def receiving() -> Iterator[Receiving]:
    """A receiver of webhooks to which the service may send."""
    with receiver() as got:
        yield got


@pytest.fixture(scope="session")
def service(
    lake: Path, receiving: Receiving, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    settings = {
        "CREDENCE_MAX_WORK": "100000",  # that a client comes upon it with a few rows
        "CREDENCE_SOURCES": f"file://{lake}/",
        "CREDENCE_WEBHOOKS": f"private+http://127.0.0.1:{receiving.port}",
    }
    with serving(tmp_path_factory.mktemp("service"), **settings) as running:
        yield running


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 rows of two numbers, a category and a target; one cell is empty."""
    path = tmp_path_factory.mktemp("table") / "Small Table.csv"
    x = np.random.default_rng(0).normal(size=(60, 2))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x0", "x1", "kind", "y"])
        for index, (a, b) in enumerate(x.tolist()):
            kind = "odd" if index % 2 else "even"
            writer.writerow([a if index else "", b, kind, 2 * a - b])
    return path


@pytest.fixture(scope="session")
def version(client: Client, table: Path) -> Version:
    """A regression model named `small`."""
    dataset = client.upload(table)["id"]
    job = client.submit_train({"model": "small", "dataset": dataset, "target": "y", **TINY})
    job = client.wait(job["id"], poll_seconds=0.1)
    assert job["status"] == "succeeded", job["error"]
    return client.version("small", 1)
