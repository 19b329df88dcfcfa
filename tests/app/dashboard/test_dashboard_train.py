"""The form for a training recommends what the route does, and its job is watched to the end."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.app.browser import Visit
from tests.app.cards import TASKS
from tests.app.running import Service, answered, regression_columns, serving
from tests.worker.conftest import worker

Json = dict[str, Any]


class Fields(HTMLParser):
    """By dotted path, what the fields of a form recommend."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.recommended: Json = {}
        self.told = page
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name = "features" if found.get("id") == "features" else found.get("name")
        if name and found.get("data-default") is not None:
            self.recommended[name] = json.loads(str(found["data-default"]))


def form(service: Service, body: Json) -> Fields:
    answer = answered(service.http.get("/ui/train", params={"request": json.dumps(body)}))
    return Fields(answer.text)


def at(document: Json, path: str) -> Any:
    here: Any = document
    for name in path.split("."):
        here = (here or {}).get(name)
    return here


def dataset_of(service: Service, model: str) -> Json:
    version: Json = service.http.get(f"/models/{model}/versions/1").json()
    return version


@pytest.mark.parametrize(
    ("task", "more"), [(task, {}) for task in TASKS] + [("price", {"method": {"kind": "map"}})]
)
def test_what_it_recommends_is_what_the_route_takes(cards: Service, task: str, more: Json) -> None:
    version = dataset_of(cards, task)
    body = {"dataset": version["dataset"], "target": version["target"], "model": "new"} | more
    if version["task"] == "forecasting":
        body["task"] = "forecasting"
    found = form(cards, body).recommended
    job = cards.post("/train", body).json()
    cards.post(f"/jobs/{job['id']}/cancel")
    request = job["request"]
    types = {f["name"]: f["type"] for f in request["features"] or []}
    for path, value in found.items():
        if path == "features":
            assert value == list(types)
        elif path not in ("method.kind", "task"):  # which were changed
            assert value == at(request, path), path
    assert len(found) > 15


def test_a_body_that_is_wrong_is_shown_with_its_errors(cards: Service) -> None:
    version = dataset_of(cards, "price")
    body = {"dataset": version["dataset"], "target": "price"}
    page = form(cards, body | {"training": {"epochs": 0}, "nonsense": 1}).told
    assert re.search(r'id="training-epochs"[^>]*aria-invalid="true"', page)
    assert "/nonsense" in page


@pytest.mark.parametrize("query", ["request=[]", "request={", "dataset=ds_none"])
def test_what_is_no_form_at_all_is_a_page_that_says_so(service: Service, query: str) -> None:
    answer = service.http.get(f"/ui/train?{query}")
    assert answer.status_code in (400, 404, 422)
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.pages
def test_the_form_follows_choices_and_sends_what_differs(service: Service, visit: Visit) -> None:
    dataset = dataset_of(service, "price")["dataset"]
    page = visit.go(f"{service.url}/ui/train?dataset={dataset}")
    page.get_by_label("Column to predict").select_option(label="price (number)")
    page.get_by_label("Method", exact=True).select_option(label="Deep ensemble")
    expect(page.locator("#method-members")).to_have_value("5")
    page.get_by_text("Settings of the method").click()
    page.locator("#method-members").fill("3")
    page.get_by_role("checkbox", name="wet").uncheck()
    page.get_by_text("Fitting").click()
    page.locator("#training-epochs").fill("0")
    page.get_by_text("The same request elsewhere").click()
    page.get_by_role("button", name="Train", exact=True).click()
    epochs = page.locator("#training-epochs")
    expect(epochs).to_be_focused()
    expect(epochs).to_have_attribute("aria-invalid", "true")
    epochs.fill("7")
    body = json.loads(page.locator("#body").inner_text())
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page).to_have_url(re.compile("/ui/jobs/job_"))
    job = service.http.get(f"/jobs/{page.url.rpartition('/')[2]}").json()
    service.post(f"/jobs/{job['id']}/cancel")
    assert body == {
        "dataset": dataset,
        "target": "price",
        "model": job["model"],
        "features": ["size", "wood", "day"],
        "method": {"kind": "ensemble", "members": 3},
        "training": {"epochs": 7},
    }
    assert job["request"]["method"]["members"] == 3
    visit.complaints.clear()  # of the 422


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


@pytest.mark.pages
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


@pytest.mark.pages
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


@pytest.mark.pages
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
