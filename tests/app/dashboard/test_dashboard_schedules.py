"""Schedules in the browser: listed, run now, and what the gate decided."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.browser import Visit
from tests.app.running import Service, regression_columns, serving
from tests.worker.conftest import worker

pytestmark = pytest.mark.pages

SOON = 120_000.0  # ms: a worker that begins on a loaded machine; nothing waits for it in vain


@pytest.fixture(scope="module")
def worked(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a worker of its own."""
    folder = tmp_path_factory.mktemp("scheduled")
    shutil.copytree(trained, folder / "data")
    with serving(folder / "data") as service, worker(service.context):
        yield service


def add(service: Service, name: str) -> None:
    train = {
        "model": name,
        "data": {"columns": regression_columns(400)},
        "target": "price",
        "training": {"epochs": 5},
        "pruning": [],
    }
    gate = {"max_loss": 100.0, "min_coverage": 0.0}
    body = {"name": name, "train": train, "cron": "0 3 * * *", "gate": gate}
    made = service.post("/schedules", body)
    assert made.status_code == 201, made.text


def test_a_schedule_is_run_and_says_why_the_alias_moved(worked: Service, visit: Visit) -> None:
    add(worked, "nightly")
    page = visit.go(f"{worked.url}/ui/schedules")
    page.get_by_role("link", name="nightly", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("nightly")
    expect(page.locator("#list")).to_contain_text("None yet.")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#list .badge")).to_have_text("passed", timeout=SOON)
    link = page.get_by_role("link", name="version 1")
    assert link.get_attribute("href") == "/ui/models/nightly/versions/1"
    visit.go(f"{worked.url}/ui/schedules")
    expect(page.locator("td .badge")).to_have_text("passed")
    visit.page.on("dialog", lambda dialog: dialog.accept())
    page = visit.go(f"{worked.url}/ui/schedules/nightly")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/ui/schedules")
    assert worked.http.get("/schedules/nightly").status_code == 404
