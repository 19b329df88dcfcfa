"""A visit to the dashboard, and a service that asks for keys."""

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
def locked(copied: Path) -> Iterator[Service]:
    key = key_file(copied.parent)
    with serving(copied, admin_key_file=key, allowed_hosts="credence.example") as service:
        yield service
