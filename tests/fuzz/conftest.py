"""A server process that many attacks share, with a small model of every task."""

from collections.abc import Iterator

import pytest

from tests.app.cards import publish_all
from tests.fuzz.bombs import LIMIT
from tests.fuzz.target import Target, attacked


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    trained = tmp_path_factory.mktemp("trained")
    publish_all(trained / "data")
    limits = {"MAX_BODY_BYTES": LIMIT, "MAX_DATASET_BYTES": LIMIT}
    settings = {f"CREDENCE_{name}": str(value) for name, value in limits.items()}
    with attacked(trained / "data", tmp_path_factory.mktemp("attacked"), **settings) as running:
        yield running
