"""A visit to the dashboard."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.app.browser import Visit


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    visit = Visit(browser)
    yield visit
    visit.context.close()
