"""A visit to the dashboard, and a service that asks for keys."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.app.browser import Visit
from tests.app.running import Service, serving
from tests.app.test_keys import key_file


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """The browser complains of nothing, and nothing pops up, while a test looks at pages."""
    visit = Visit(browser)
    yield visit
    complaints = list(visit.complaints)  # before the end, during which others may come
    visit.context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def locked(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("locked-dashboard")
    shutil.copytree(trained, folder / "data")
    names = {"allowed_hosts": "credence.example"}
    with serving(folder / "data", admin_key_file=key_file(folder), **names) as service:
        yield service
