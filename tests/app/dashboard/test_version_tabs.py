"""The tabs of a version: readable at every width, without scripts, and what each of them says."""

import math
import re

import pytest
from playwright.sync_api import Page

from models.config import Json
from tests.app.browser import Visit
from tests.app.conftest import MakeService
from tests.app.running import Service, regression_columns


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


PAGE = "/ui/models/price/versions/1/expected"


def test_the_page_of_a_version_leads_to_the_scores_of_a_data_set(make_service: MakeService) -> None:
    service = make_service()
    columns = regression_columns(60)
    columns.pop("price")
    dataset, _ = service.context.datasets.add_columns("next month", columns)
    assert f'href="{PAGE}"' in service.http.get("/ui/models/price/versions/1").text
    choice = service.http.get(PAGE)
    assert choice.status_code == 200
    assert f'href="{PAGE}?dataset={dataset.id}">next month</a>' in choice.text
    shown = service.http.get(PAGE, params={"dataset": dataset.id})
    assert shown.status_code == 200
    answer = service.http.get(
        "/models/price/expected", params={"dataset": dataset.id, "version": 1}
    ).json()
    rows = re.findall(r'<th scope="row">', shown.text)
    assert len(rows) == len(answer["scores"])
    assert f"{answer['scores']['rmse']['expected']:.4g}" in shown.text
    assert "actual" not in shown.text


def test_a_data_set_without_the_columns_is_refused_on_the_page(service: Service) -> None:
    dataset, _ = service.context.datasets.add_columns("other", {"z": [1.0, 2.0]})
    shown = service.http.get(PAGE, params={"dataset": dataset.id}, headers={"Accept": "text/html"})
    assert shown.status_code == 422
    assert "other cannot be used:" in shown.text
