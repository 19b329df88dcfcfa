"""One cradle for all; a context and a data set as the worker's tests have them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.context import Context, open_context
from core.settings import load_settings
from tests.chaos.cradle import Cradle
from tests.worker.conftest import add_line


@pytest.fixture(scope="session")
def cradle() -> Iterator[Cradle]:
    with Cradle() as running:
        yield running


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_context(load_settings(data_dir=tmp_path / "data", lease_seconds=2, threads=1))
    yield opened
    opened.close()


@pytest.fixture
def dataset(context: Context) -> str:
    return add_line(context)
