"""Jobs in the browser, with a real worker behind them: watched to the end, cancelled, resumed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.app.browser import Visit
from tests.app.running import Service, regression_columns, serving
from tests.worker.conftest import worker

SOON = 60_000.0  # ms: a worker that begins on a loaded machine; nothing waits for it in vain


@pytest.fixture(scope="module")
def worked(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a worker of its own."""
    folder = tmp_path_factory.mktemp("worked")
    shutil.copytree(trained, folder / "data")
    with serving(folder / "data") as service, worker(service.context):
        yield service


def train(service: Service, epochs: int) -> str:
    body = {
        "model": "live",
        "data": {"columns": regression_columns()},
        "target": "price",
        "training": {"epochs": epochs, "fine_tune_epochs": 1},
        "pruning": [0.5],
    }
    answer = service.post("/train", body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def test_a_job_is_watched_to_its_model(worked: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{worked.url}/ui/jobs/{train(worked, 30)}")
    expect(page.locator("#job .badge")).to_have_text("succeeded", timeout=SOON)
    to_model = page.get_by_role("link", name="View live version 1")
    assert to_model.get_attribute("href") == "/ui/models/live/versions/1"
    for _ in ("as it came", "after a reload"):
        expect(page.locator("#losses.js-plotly-plot")).to_be_visible()
        expect(page.get_by_role("log")).to_contain_text("50 % pruned")
        expect(page.get_by_role("log")).to_contain_text("succeeded")
        page.get_by_text("Learning curve: numbers").click()
        last = page.locator("#curve-rows tr").last
        expect(last).to_contain_text("50 % pruned")
        page.reload()
    page.get_by_role("link", name="Change and train again").click()
    expect(page.locator("#training-epochs")).to_have_value("30")
    assert visit.complaints == []
    visit.context.close()


def test_a_running_job_is_cancelled_and_resumed(worked: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{worked.url}/ui/jobs/{train(worked, 100_000)}")
    expect(page.locator("#job .badge")).to_have_text("running", timeout=SOON)
    expect(page.locator("#losses.js-plotly-plot")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job .badge")).to_have_text("cancelled", timeout=SOON)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("log")).to_contain_text("queued: resumed", timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job .badge")).to_have_text("cancelled", timeout=SOON)
    page.goto(f"{worked.url}/ui/jobs?status=cancelled")
    expect(page.get_by_role("row").filter(has_text="Training live")).to_have_count(1)
    assert visit.complaints == []
    visit.context.close()


def test_a_failed_job_says_what_to_do_and_the_start_page_tells(
    worked: Service, browser: Browser
) -> None:
    body = {"model": "wild", "data": {"columns": regression_columns()}, "target": "price"}
    wild = {"optimizer": "sgd", "learning_rate": 100.0, "gradient_clip": 1e6, "epochs": 20}
    body |= {"training": wild, "network": {"kind": "mlp", "hidden": [50, 50]}}
    job = worked.post("/train", body).json()["id"]
    visit = Visit(browser)
    page = visit.go(f"{worked.url}/ui/jobs/{job}")
    expect(page.locator("#job .badge")).to_have_text("failed", timeout=SOON)
    expect(page.get_by_role("alert")).to_contain_text("training diverged at step")
    expect(page.get_by_role("link", name="Change and train again")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)  # it would diverge again
    page.goto(worked.url)
    attention = page.locator(".attention")
    expect(attention).to_contain_text("Training wild failed")
    attention.get_by_role("link").click()
    expect(page).to_have_url(re.compile(job))
    visit.context.close()


def test_the_system_page_tells_of_the_worker_and_of_predictions(
    worked: Service, browser: Browser
) -> None:
    body = {"model": "price", "inputs": [[1.0, "oak", True, None]]}
    for samples in (1, 10, 100):
        assert worked.post("/predict", body | {"samples": samples}).status_code == 200
    visit = Visit(browser)
    page = visit.go(f"{worked.url}/ui/system")
    expect(page.get_by_role("row").filter(has_text="cpu")).to_have_count(1, timeout=SOON)
    expect(page.locator(".tiles .badge")).to_have_text(["ok"] * 4)
    expect(page.locator("#latency-figure")).to_have_count(1)
    drawn = page.evaluate("JSON.parse(document.getElementById('latency-figure').textContent).data")
    assert {line["mode"] for line in drawn} == {"markers"}  # unlike requests, so no line
    expect(page.locator("#drift-scroll")).to_contain_text("price")
    assert "3 answered (200)" in page.locator("main").inner_text()
    assert visit.complaints == []
    visit.context.close()
