"""One stack for all tests of this package: built, started from nothing, removed at the end."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.stack import Stack, engine_missing
from tests.integration.work import predict, train, upload, wait


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("one process at a time: `make test-docker`")
    if reason := engine_missing():
        pytest.skip(f"no Docker engine with compose: {reason}")
    stack = Stack()
    stack.compose("down", "--volumes", "--timeout", "5")
    started = time.monotonic()
    try:
        stack.compose("build", "--quiet")
        built = time.monotonic() - started
        healthy = stack.start()
        print(  # noqa: T201 - for who runs `make test-docker`
            f"\nimages built in {built:.0f} s, all healthy in {healthy:.0f} s", file=sys.stderr
        )
        yield stack
    finally:
        keep_logs(stack)
        stack.compose("down", "--volumes", "--timeout", "5")


def keep_logs(stack: Stack) -> None:
    """For whoever wants to know why a test failed."""
    folder = Path("/tmp/credence-stack")
    folder.mkdir(exist_ok=True)
    text = stack.compose("logs", "--no-color", "--timestamps")
    (folder / "stack.log").write_text(text)


@pytest.fixture(autouse=True)
def whole(stack: Stack) -> None:
    """Each test begins with a stack that is whole, however the one before has ended."""
    stack.make_whole()


@pytest.fixture
def http(stack: Stack, whole: None) -> Iterator[httpx.Client]:
    with stack.http() as client:
        yield client


@pytest.fixture
def dataset(http: httpx.Client) -> str:
    """The same rows give the data set that exists."""
    return upload(http)


@pytest.fixture
def reference(http: httpx.Client, dataset: str) -> list[float]:
    """What the model `steady` answers before the test does something."""
    if http.get("/models/steady").status_code == 404:
        assert wait(http, train(http, dataset, "steady"))["status"] == "succeeded"
    return list(predict(http, "steady", seed=1)["mean"])
