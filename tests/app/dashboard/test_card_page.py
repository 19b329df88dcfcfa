"""The page of a card in a real browser: charts drawn, nothing from elsewhere, readable by all."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from credence.client import Client
from tests.app.browser import Theme, Visit, serious_problems
from tests.app.cards import TASKS
from tests.app.running import Service

CHARTS = {"price": 14, "tree": 10, "sales": 10, "lines": 6}
NAMED_ROWS = ("baselines-", "importance-")  # of charts: names of rows need no title


@pytest.mark.parametrize("model", TASKS)
def test_charts_are_drawn_from_this_service_alone(
    cards: Service, browser: Browser, model: str
) -> None:
    visit = Visit(browser)
    page = visit.go(f"{cards.url}/models/{model}/versions/1/card")
    assert page.locator("[data-figure]").count() == CHARTS[model]
    points = "e => e.querySelectorAll('.scatterlayer path, .barlayer path').length"
    for chart in page.locator("[data-figure]").all():
        assert chart.evaluate(points) > 0
        titles = chart.evaluate("e => e.querySelectorAll('.xtitle, .ytitle').length")
        named_rows = str(chart.get_attribute("data-figure")).startswith(NAMED_ROWS)
        assert titles == (1 if named_rows else 2)
    assert all(url.startswith((cards.url, "data:")) for url in visit.requests)
    assert visit.complaints == []
    visit.context.close()


def test_simple_methods_and_candidates_are_tables(cards: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{cards.url}/models/price/versions/1/card")
    methods = page.get_by_role("table", name="Simple methods on the same held-out rows")
    names = ["this model", "constant", "linear model", "boosted trees"]
    assert methods.locator("tbody th").all_inner_texts() == names
    candidates = page.get_by_role("table", name="Candidates on 96 rows left out")
    assert candidates.locator("tbody tr").first.locator("td").all_inner_texts() == [
        "−1", "0.2", "0", "0.1", "yes", "kl 1, width [20,20]",
    ]  # fmt: skip
    page.get_by_role("link", name="Beside simple methods").click()
    assert methods.is_visible()
    visit.context.close()


@pytest.mark.parametrize(("model", "theme"), [("price", "light"), ("tree", "dark")])
def test_everybody_can_read_it(cards: Service, browser: Browser, model: str, theme: Theme) -> None:
    """One chart's numbers are open: those of the others are the same table."""
    visit = Visit(browser, theme)
    page = visit.go(f"{cards.url}/models/{model}/versions/1/card")
    page.locator("details").first.evaluate("e => { e.open = true }")
    assert serious_problems(page) == []
    visit.context.close()


def test_nothing_is_cut_off_on_a_phone(cards: Service, browser: Browser) -> None:
    visit = Visit(browser, width=360)
    page = visit.go(f"{cards.url}/models/price/versions/1/card")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    visit.context.close()


def test_charts_follow_the_theme_and_paper_is_white(cards: Service, browser: Browser) -> None:
    visit = Visit(browser, "dark")
    page = visit.go(f"{cards.url}/models/price/versions/1/card")
    dark = visit.colour()
    page.emulate_media(color_scheme="light")
    light = visit.colour()
    assert light != dark
    page.emulate_media(color_scheme="dark")
    assert visit.colour() == dark
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert visit.colour() == light
    visit.context.close()


def test_a_card_in_one_file_needs_no_service(
    cards: Service, browser: Browser, tmp_path: Path
) -> None:
    with Client(cards.url) as client:
        path = tmp_path / "card.html"
        path.write_text(client.card_page("tree", 1), encoding="utf-8")
    visit = Visit(browser)
    page = visit.go(path.as_uri())
    assert page.locator("[data-figure] .main-svg").count() >= CHARTS["tree"]
    assert page.evaluate("getComputedStyle(document.querySelector('.facts')).display") == "grid"
    assert [url for url in visit.requests if not url.startswith("data:")] == [path.as_uri()]
    assert visit.complaints == []
    visit.context.close()
