"""The tabs of a version: readable at every width, without scripts, and what each of them says."""

import math

import pytest
from playwright.sync_api import Page

from app.ui.card.beside import scores_beside, verdicts, weak_spots
from models.config import Json
from tests.app.browser import Visit
from tests.app.running import Service


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


def test_an_unknown_tab_is_named(cards: Service) -> None:
    answer = cards.http.get("/ui/models/price/versions/1?tab=shares")
    assert answer.status_code == 422


def test_the_overview_says_how_good_beside_what(cards: Service) -> None:
    found = card(cards, "price")
    table = scores_beside(found, only_first=True)
    assert table.headers == ("score", "this model", "constant", "linear model", "boosted trees")
    for row in table.rows:
        assert all(" ± " in str(cell) for cell in row[1:] if cell is not None), row
    said = {one.text: one.kind for one in verdicts(found)}
    by_kind = {one["kind"]: one for one in found["baselines"]}
    constant = by_kind["constant"]
    (text,) = [text for text in said if " a constant" in text]
    is_clear = constant["advantage"] > 2 * constant["advantage_error"]
    assert said[text] == ("better" if is_clear else "equal")
    page = cards.http.get("/ui/models/price/versions/1").text
    assert f"{text}." in page


def test_what_chance_explains_is_no_verdict() -> None:
    one = {"kind": "linear", "advantage": 0.01, "advantage_error": 0.02}
    for advantage, kind in ((0.01, "equal"), (0.03, "equal"), (0.05, "better"), (-0.05, "worse")):
        made = {"task": "regression", "baselines": [one | {"advantage": advantage}]}
        (verdict,) = verdicts(made)
        assert verdict.kind == kind


def test_weak_classes_and_groups_are_named() -> None:
    classes = [
        {"class": "fraud", "recall": 0.3, "rows": 100},
        {"class": "usual", "recall": 0.99, "rows": 900},
    ]
    parts = [
        {"name": "north", "rows": 50, "coverage": 0.6, "covered": False},
        {"name": "south", "rows": 50, "coverage": 0.88, "covered": True},
    ]
    metrics = {
        "accuracy": 0.92,
        "by_class": classes,
        "coverage_by_group": {"column": "region", "level": 0.9, "parts": parts},
    }
    region, fraud = weak_spots({"variants": [{"metrics": metrics}]})
    assert "north: 60 %" in region
    assert "30.0 ± 4.6 %" in fraud


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


def test_the_overview_of_a_forecast_has_classical_methods_beside_it(cards: Service) -> None:
    found = card(cards, "shops")
    naive = found["variants"][0]["metrics"]["baselines"]["seasonal_naive"]
    (said,) = [one for one in verdicts(found) if "seasonal naive" in one.text]
    is_clear = abs(naive["advantage"]) > 2 * naive["advantage_error"]
    assert (said.kind != "equal") == is_clear
