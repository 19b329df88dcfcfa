"""The tabs of a version: readable at every width, without scripts, and what each of them says."""

import math
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.ui.card.beside import scores_beside, verdicts, weak_spots
from app.ui.version_tabs import Tab, contents
from models.config import Json
from tests.app.browser import Visit, serious_problems
from tests.app.running import Service

WIDTHS = (1440, 900, 390)
MOST_PIXELS = 2_200  # in height, at the largest width
MOST_BYTES = 500_000  # of scripts before the first chart


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    visit = Visit(browser)
    yield visit
    visit.context.close()
    assert visit.complaints == []


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


@pytest.mark.parametrize("tab", list(Tab))
@pytest.mark.parametrize("model", ["price", "tree"])
def test_a_tab_can_be_read_at_every_width_in_both_themes(
    cards: Service, visit: Visit, model: str, tab: Tab
) -> None:
    page = visit.go(address(cards, model, tab))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        drawn(page)
        # Charts follow a window that has another size a moment later.
        page.wait_for_function("w => document.documentElement.scrollWidth === w", arg=width)
    assert serious_problems(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious_problems(page, "color-contrast") == []
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") < MOST_PIXELS
    assert all(url.startswith((cards.url, "data:")) for url in visit.requests)


def test_tabs_are_links_that_need_no_script(cards: Service, browser: Browser) -> None:
    """By keyboard alone: each tab has its heading, and says that it is the present one."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{cards.url}/ui/models/tree/versions/1")
    tabs = page.get_by_role("navigation", name="About this version")
    headings = (
        "How good is it?",
        "Confusion matrix",
        "Calibration",
        "Importance",
        "Pruned",
        "Origin",
    )
    assert tabs.locator("[aria-current]").inner_text() == "Overview"
    for name, heading in zip(tabs.get_by_role("link").all_inner_texts(), headings, strict=False):
        tabs.get_by_role("link", name=name).focus()
        page.keyboard.press("Enter")
        expect(tabs.locator("[aria-current]")).to_have_text(name)
        expect(page.get_by_role("heading", name=heading).first).to_be_visible()
    context.close()


def test_an_unknown_tab_is_named(cards: Service) -> None:
    answer = cards.http.get("/ui/models/price/versions/1?tab=shares")
    assert answer.status_code == 422
    assert "overview" in answer.text


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
        assert verdict.text.startswith(("As good as", "Perhaps", "Better than", "Worse than"))


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
    assert region.startswith("region north: 60 % of 50")
    assert fraud.startswith("fraud: only 30.0 ± 4.6 % of its 100")


def test_a_version_of_an_older_release_says_what_it_lacks(cards: Service) -> None:
    old = card(cards, "price") | {"held_out": {}}
    shown = contents(Tab.SCORES, old)
    assert (shown["curves"], shown["sections"]["held-out"].charts) == ([], [])
    assert "confusion" in contents(Tab.OVERVIEW, card(cards, "tree") | {"held_out": {}})


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


def test_the_threshold_moves_precision_and_recall(cards: Service, visit: Visit) -> None:
    curve = card(cards, "tree")["held_out"]["curves"][0]
    page = visit.go(address(cards, "tree", "scores"))
    drawn(page)
    page.get_by_label("Class", exact=True).select_option(index=0)
    slider = page.get_by_role("slider", name="Threshold")
    slider.focus()
    for keys in (("Home",), ("End",), ("ArrowLeft", "ArrowLeft")):
        for key in keys:
            page.keyboard.press(key)
        at = int(slider.input_value()) / 100
        above = sum(value >= at for value in curve["threshold"])
        recall = curve["recall"][above - 1] if above else 0.0
        told = page.locator("#threshold-facts div", has_text="recall").locator("dd")
        expect(told).to_have_text(f"{math.floor(100 * recall + 0.5)} %")
    marks = page.evaluate("document.querySelector('[data-figure=roc-figure]').data.at(-1).y")
    assert len(marks) <= 1


def test_scripts_before_the_first_chart_are_small(cards: Service, visit: Visit) -> None:
    page = visit.go(address(cards, "price", "overview"))
    drawn(page)
    scripts = page.evaluate(
        """performance.getEntriesByType("resource").filter(e => e.name.includes(".js"))
           .reduce((sum, e) => sum + e.encodedBodySize, 0)"""
    )
    assert 300_000 < scripts < MOST_BYTES


def test_counts_of_a_forecast_say_what_they_count(cards: Service) -> None:
    """Windows are not rows, and forecasts overlap: their numbers are not those of the table."""
    found = card(cards, "shops")
    rows, metrics = found["rows"], found["variants"][0]["metrics"]
    levels = next(one["levels"] for one in rows["columns"] if one["name"] == "shop")
    assert sum(count for _, count in levels) == rows["described"] > rows["learned"]
    page = cards.http.get("/ui/models/shops/versions/1?tab=lineage").text
    assert f"{rows['learned']} training windows" in page
    assert f"describes the {rows['described']} learned rows" in page
    assert "The table describes the training rows" not in page
    page = cards.http.get("/ui/models/shops/versions/1?tab=calibration").text
    assert "fitted to steps of forecasts" in page
    assert "of their own" not in page
    assert "held-out steps above it" in page
    page = cards.http.get("/ui/models/shops/versions/1").text
    assert f"Scores of {metrics['origins']} forecasts of the last {rows['held_out']} steps" in page
    assert "windows for training" in page


@pytest.mark.parametrize("model", ["shops", "lines"])
def test_what_a_task_cannot_have_is_not_to_be_trained_again(cards: Service, model: str) -> None:
    page = cards.http.get(f"/ui/models/{model}/versions/1?tab=scores").text
    assert "Train again" not in page
    assert "Not stored for this version" not in page


def test_the_overview_of_a_forecast_has_classical_methods_beside_it(cards: Service) -> None:
    found = card(cards, "shops")
    naive = found["variants"][0]["metrics"]["baselines"]["seasonal_naive"]
    (said,) = [one for one in verdicts(found) if "seasonal naive" in one.text]
    assert "the seasonal naive forecast" in said.text
    is_clear = abs(naive["advantage"]) > 2 * naive["advantage_error"]
    assert (said.kind != "equal") == is_clear
    page = cards.http.get("/ui/models/shops/versions/1").text
    assert f"{said.text}." in page
    assert "Beside classical methods, each at the same origins" in page
