"""Services that tests share, and ones of their own."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from filelock import FileLock
from playwright.sync_api import Browser, expect, sync_playwright

import credence
from core.context import open_context
from core.settings import load_settings
from core.telemetry.logging import configure_logging
from credence.client import Client
from credence.scoring.model import LoadedModel
from models.prediction.compiled.compiler import compiler
from tests.app.browser import BROWSERS, installed_browser
from tests.app.cards import publish_all
from tests.app.running import Service, class_columns, publish, regression_columns, serving


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """A folder that `build` has filled, for all to read and nobody to change.

    The first process that asks builds it; the others wait for it.
    """
    worker = factory.getbasetemp()
    run = worker.parent if worker.name.startswith("popen-gw") else worker  # of pytest-xdist
    built = run / f"once-{name}"
    with FileLock(run / f"once-{name}.lock"):
        if not built.exists():
            unfinished = run / f"unfinished-{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(built)
    return built


MakeService = Callable[..., Service]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Coroutine tests run on the loop that uvicorn runs on."""
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def _logging() -> None:
    """As in production, where an exception is a line of JSON; commands may have changed it."""
    configure_logging("json", "info")


@pytest.fixture(scope="session", autouse=True)
def _kernels() -> None:
    """No test begins with torch and ends with compiled kernels, which round otherwise."""
    compiler().wait()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a regression (two versions, alias `champion` on 1) and a classifier."""
    return once(tmp_path_factory, "trained", _train)


def _train(data_dir: Path) -> None:
    context = open_context(load_settings(data_dir=data_dir))
    publish(context, "price", regression_columns(), target="price", alias="champion")
    publish(context, "price", regression_columns(), target="price")
    publish(context, "tree", class_columns(), target="tree", features=["x", "y", "image"])
    context.close()


@pytest.fixture(scope="module")
def copied(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of a module's own with those."""
    return Path(shutil.copytree(trained, tmp_path_factory.mktemp("copied") / "data"))


@pytest.fixture(scope="session")
def service(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for tests that leave models and aliases as they are."""
    data_dir = tmp_path_factory.mktemp("shared") / "data"
    shutil.copytree(trained, data_dir)
    with serving(data_dir) as running:
        yield running


@pytest.fixture(scope="module")
def archive(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of version 1 of `price`."""
    path = tmp_path_factory.mktemp("archives") / "price.tar"
    with Client(service.url) as client:
        client.export_version("price", 1, path)
    return path


@pytest.fixture(scope="module")
def model(archive: Path) -> LoadedModel:
    """Version 1 of `price`, loaded without the service."""
    return credence.load(archive)


@pytest.fixture(scope="session")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a small model of every task."""
    data_dir = tmp_path_factory.mktemp("shared-cards") / "data"
    shutil.copytree(once(tmp_path_factory, "cards", publish_all), data_dir)
    with serving(data_dir) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while it is open its event loop runs, beside which no other one may."""
    path = installed_browser()
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} is on the path")
    expect.set_options(timeout=120_000)  # ms: machines that do much else are slow, and not wrong
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def http(service: Service) -> httpx.Client:
    return service.http


@pytest.fixture
def make_service(trained: Path, tmp_path: Path) -> Iterator[MakeService]:
    """Servers of the test's own, with settings of its own, on a copy of the trained models."""
    with ExitStack() as stack:

        def make(**overrides: Any) -> Service:
            data_dir = tmp_path / f"data-{len(list(tmp_path.iterdir()))}"
            shutil.copytree(trained, data_dir)
            return stack.enter_context(serving(data_dir, **overrides))

        yield make


@pytest.fixture
def own(make_service: MakeService) -> Service:
    """A server that a test may change, with the usual settings."""
    return make_service()
