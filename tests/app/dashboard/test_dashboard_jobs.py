"""Jobs in the browser, with a real worker behind them: watched to the end, cancelled, resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.browser import Visit
from tests.app.running import Service, answered, regression_columns, serving
from tests.worker.conftest import worker

pytestmark = pytest.mark.pages

SOON = 120_000.0  # ms: a worker that begins on a loaded machine; nothing waits for it in vain


@pytest.fixture(scope="module")
def worked(copied: Path) -> Iterator[Service]:
    """A service with a worker of its own."""
    with serving(copied) as service, worker(service.context):
        yield service


def train(service: Service, epochs: int) -> str:
    body = {
        "model": "live",
        "data": {"columns": regression_columns()},
        "target": "price",
        "training": {"epochs": epochs, "fine_tune_epochs": 1},
        "pruning": [0.5],
    }
    answer = answered(service.post("/train", body), 202)
    return str(answer.json()["id"])


def test_a_job_is_watched_to_its_model(worked: Service, visit: Visit) -> None:
    page = visit.go(f"{worked.url}/ui/jobs/{train(worked, 30)}")
    expect(page.locator("#job .badge")).to_have_text("succeeded", timeout=SOON)
    to_model = page.get_by_role("link", name="View live version 1")
    assert to_model.get_attribute("href") == "/ui/models/live/versions/1"
    for _ in ("as it came", "after a reload"):
        expect(page.locator("#losses.js-plotly-plot")).to_be_visible()
        expect(page.get_by_role("log")).to_contain_text("50 % pruned")
        page.reload()
    page.get_by_role("link", name="Change and train again").click()
    expect(page.locator("#training-epochs")).to_have_value("30")


def test_a_running_job_is_cancelled_and_resumed(worked: Service, visit: Visit) -> None:
    page = visit.go(f"{worked.url}/ui/jobs/{train(worked, 100_000)}")
    expect(page.locator("#job .badge")).to_have_text("running", timeout=SOON)
    expect(page.locator("#losses.js-plotly-plot")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job .badge")).to_have_text("cancelled", timeout=SOON)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("log")).to_contain_text("queued: resumed", timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job .badge")).to_have_text("cancelled", timeout=SOON)


def test_a_schedule_is_run_and_says_why_the_alias_moved(worked: Service, visit: Visit) -> None:
    training = {
        "model": "nightly",
        "data": {"columns": regression_columns(400)},
        "target": "price",
        "training": {"epochs": 5},
        "pruning": [],
    }
    gate = {"max_loss": 100.0, "min_coverage": 0.0}
    body = {"name": "nightly", "train": training, "cron": "0 3 * * *", "gate": gate}
    assert worked.post("/schedules", body).status_code == 201
    page = visit.go(f"{worked.url}/ui/schedules/nightly")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#list .badge")).to_have_text("passed", timeout=SOON)
    link = page.get_by_role("link", name="version 1")
    assert link.get_attribute("href") == "/ui/models/nightly/versions/1"
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/ui/schedules")
    assert worked.http.get("/schedules/nightly").status_code == 404
