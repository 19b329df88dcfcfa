"""The page of a card in a real browser: charts drawn, nothing from elsewhere, readable by all."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from credence.client import Client
from tests.app.cards import TASKS
from tests.app.running import Service

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
Theme = Literal["light", "dark"]
CHARTS = {"price": 9, "tree": 8, "sales": 9, "lines": 6}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} is on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page and what the browser complained of, or asked for, while it was there."""

    def __init__(self, browser: Browser, theme: Theme = "light", width: int = 1200) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme
        )
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def go(self, url: str) -> Page:
        """Charts are drawn by the time that a page is loaded."""
        self.page.goto(url)
        return self.page

    def colour(self) -> str:
        """Of a chart's text, once all that is under way is painted."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        read = "() => getComputedStyle(document.querySelector('.xtitle')).fill"
        return str(self.page.evaluate(read))


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
        assert chart.evaluate("e => e.querySelectorAll('.xtitle, .ytitle').length") == 2
    assert all(url.startswith((cards.url, "data:")) for url in visit.requests)
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize(("model", "theme"), [("price", "light"), ("tree", "dark")])
def test_everybody_can_read_it(cards: Service, browser: Browser, model: str, theme: Theme) -> None:
    """One chart's numbers are open: those of the others are the same table."""
    visit = Visit(browser, theme)
    page = visit.go(f"{cards.url}/models/{model}/versions/1/card")
    page.locator("details").first.evaluate("e => { e.open = true }")
    found = Axe().run(page).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert serious == [], [(v["id"], v["nodes"][0]["html"]) for v in serious]
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
