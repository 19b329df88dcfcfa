"""The tabs of a version, and its monitoring, in a browser."""

import math
import re

import numpy as np
import pytest
from playwright.sync_api import FilePayload, Page, expect

from app.ui.monitoring import sentence
from models.config import Json
from tests.app.browser import Visit
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, regression_columns

PAGE = "/ui/models/price/versions/1"


def labelled(service: Service, count: int, shift: float) -> str:
    """A CSV file whose truth is the prediction and `shift` standard deviations more."""
    sizes = np.random.default_rng(0).uniform(-2, 2, count).round(3).tolist()
    inputs = [{"size": size, "wood": "oak", "wet": True, "day": None} for size in sizes]
    answer = service.post("/predict", {"model": "price", "version": 1, "inputs": inputs}).json()
    truth = np.array(answer["mean"]) + shift * np.sqrt(answer["variance"]["total"])
    lines = [
        f"{size};oak;true;;{value:.4f};x".replace(".", ",")
        for size, value in zip(sizes, truth.tolist(), strict=True)
    ]
    return "\n".join(["size;wood;wet;day;price;note", *lines])


def csv(text: str) -> FilePayload:
    return {"name": "measured.csv", "mimeType": "text/csv", "buffer": text.encode()}


@pytest.mark.pages
def test_a_file_of_truths_alarms_and_is_withdrawn(make_service: MakeService, visit: Visit) -> None:
    own = make_service()
    page = visit.go(own.url + PAGE)
    still = page.locator("#still")
    expect(still).to_contain_text("Not known yet")
    page.get_by_label("File").set_input_files(csv(labelled(own, 120, shift=4.0)))
    page.get_by_role("button", name="Send true values").click()
    answer = page.locator("#labels-answer")
    expect(answer).to_contain_text("120 rows compared")
    check = own.http.get("/models/price/feedback?version=1").json()["metrics"]["check"]
    expect(page.locator("#alarm")).to_contain_text(sentence(check))
    expect(still.get_by_role("link", name="train on newer rows")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Withdraw them").click()
    expect(still).to_contain_text("Not known yet")
    expect(page.locator("#alarm")).to_be_empty()


def address(service: Service, model: str, tab: str) -> str:
    return f"{service.url}/ui/models/{model}/versions/1?tab={tab}"


def card(service: Service, model: str) -> Json:
    found: Json = service.http.get(f"/models/{model}/versions/1/card").json()
    return found


def drawn(page: Page) -> None:
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-figure]')].every(
            e => e.querySelector('.main-svg'))"""
    )


@pytest.mark.pages
def test_predicted_stands_against_actual_with_intervals(cards: Service, visit: Visit) -> None:
    found = card(cards, "price")["held_out"]
    page = visit.go(address(cards, "price", "scores"))
    drawn(page)
    traces = page.evaluate(
        "JSON.parse(JSON.stringify(document.querySelector('[data-figure=held-out-figure]').data))"
    )
    actual = sorted(v for trace in traces[:2] for v in trace["x"])
    assert actual == pytest.approx(sorted(found["actual"]))
    inside = [
        low <= y <= high
        for y, low, high in zip(*(found[n] for n in ("actual", "lower", "upper")), strict=True)
    ]
    assert [len(trace["x"]) for trace in traces[:2]] == [sum(inside), len(inside) - sum(inside)]
    metrics = card(cards, "price")["variants"][0]["metrics"]
    assert sum(inside) / len(inside) == pytest.approx(metrics["coverage"]["0.9"])
    rmse = math.sqrt(
        sum((a - b) ** 2 for a, b in zip(found["actual"], found["mean"], strict=True)) / len(inside)
    )
    assert rmse == pytest.approx(metrics["rmse"], rel=1e-4)


TABS = "/ui/models/price/versions/1/expected"


def test_the_page_of_a_version_leads_to_the_scores_of_a_data_set(make_service: MakeService) -> None:
    service = make_service()
    columns = regression_columns(60)
    columns.pop("price")
    dataset, _ = service.context.datasets.add_columns("next month", columns)
    assert f'href="{TABS}"' in service.http.get("/ui/models/price/versions/1").text
    choice = answered(service.http.get(TABS))
    assert f'href="{TABS}?dataset={dataset.id}">next month</a>' in choice.text
    shown = answered(service.http.get(TABS, params={"dataset": dataset.id}))
    answer = service.http.get(
        "/models/price/expected", params={"dataset": dataset.id, "version": 1}
    ).json()
    rows = re.findall(r'<th scope="row">', shown.text)
    assert len(rows) == len(answer["scores"])
    assert f"{answer['scores']['rmse']['expected']:.4g}" in shown.text
    assert "actual" not in shown.text


def test_a_data_set_without_the_columns_is_refused_on_the_page(service: Service) -> None:
    dataset, _ = service.context.datasets.add_columns("other", {"z": [1.0, 2.0]})
    shown = service.http.get(TABS, params={"dataset": dataset.id}, headers={"Accept": "text/html"})
    assert shown.status_code == 422
    assert "other cannot be used:" in shown.text
