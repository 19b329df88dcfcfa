"""The frame of the dashboard in a browser: readable by all, signing in, search by keyboard."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from app.ui.version_tabs import Tab
from credence.client import Client
from tests.app.browser import Visit, serious_problems
from tests.app.running import Service
from tests.app.test_keys import ADMIN_KEY

pytestmark = pytest.mark.pages

VERSION = "/ui/models/price/versions/1?tab="
PAGES = ("/", f"{VERSION}{Tab.OVERVIEW}", f"{VERSION}{Tab.SCORES}", "/ui/predict?model=price")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read_by_all_and_on_a_phone(cards: Service, visit: Visit, path: str) -> None:
    page = visit.go(cards.url + path)
    for width in (360, 900, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        # Charts follow a window that has another size a moment later.
        page.wait_for_function("w => document.documentElement.scrollWidth === w", arg=width)
    assert serious_problems(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious_problems(page, "color-contrast") == []
    assert all(url.startswith((cards.url, "data:")) for url in visit.requests)


def test_without_a_key_a_page_asks_for_one_and_goes_on(locked: Service, visit: Visit) -> None:
    page = visit.go(f"{locked.url}/")
    assert page.url == f"{locked.url}/ui/sign-in?next=/"
    page.get_by_label("Key").fill("guessed")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{locked.url}/")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/ui/sign-in")
    assert page.goto(f"{locked.url}/").url.startswith(f"{locked.url}/ui/sign-in")
    visit.complaints.clear()  # of the 401


def test_a_card_in_one_file_needs_no_service(cards: Service, visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "card.html"
    with Client(cards.url) as client:
        path.write_text(client.card_page("tree", 1), encoding="utf-8")
    page = visit.go(path.as_uri())
    assert page.locator("[data-figure] .main-svg").count() > 0
    assert [url for url in visit.requests if not url.startswith("data:")] == [path.as_uri()]


def typed(page: Page, text: str) -> None:
    """Into the search, from anywhere on the page, at once."""
    page.keyboard.press("/")
    page.keyboard.insert_text(text)


def chosen(page: Page) -> str:
    """What a screen reader would say of the option that the field names."""
    name = page.get_by_role("combobox").get_attribute("aria-activedescendant")
    option = page.locator(f"#{name}")
    expect(option).to_have_attribute("aria-selected", "true")
    return option.inner_text()


def test_keys_choose_what_is_found(service: Service, visit: Visit) -> None:
    page = visit.go(f"{service.url}/ui/system")
    field = page.get_by_role("combobox", name="Search")
    typed(page, "pri")
    expect(page.get_by_role("group", name="Models").get_by_role("option")).to_have_count(1)
    first = chosen(page)
    page.keyboard.press("ArrowUp")
    assert chosen(page) == page.get_by_role("option").last.inner_text()
    page.keyboard.press("ArrowDown")
    assert chosen(page) == first
    page.keyboard.press("Escape")
    expect(field).to_have_attribute("aria-expanded", "false")
    assert field.input_value() == "pri"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/models/price")


def test_enter_waits_for_the_list_of_what_was_typed(service: Service, visit: Visit) -> None:
    page = visit.go(f"{service.url}/ui/system")
    held: list[Route] = []
    page.route("**/ui/search?*", lambda route: held.append(route))  # noqa: PLW0108
    with page.expect_request("**/ui/search?*"):
        typed(page, "tree")
    page.keyboard.press("Enter")
    assert page.url.endswith("/ui/system")
    held.pop().continue_()
    page.wait_for_url("**/ui/models/tree")


def test_under_a_prefix_a_browser_asks_for_nothing_outside(cards: Service, visit: Visit) -> None:
    prefix = "/tools/credence"
    visit.context.set_extra_http_headers({"X-Forwarded-Prefix": prefix})
    page = visit.go(f"{cards.url}{prefix}/ui/predict?model=price")
    page.get_by_role("button", name="Predict", exact=True).click()
    page.locator("#answer").get_by_text("90 %").first.wait_for()
    typed(page, "tree")
    page.get_by_role("group", name="Models").get_by_role("option").first.click()
    page.wait_for_url(f"**{prefix}/ui/models/tree")
    inside = (f"{cards.url}{prefix}/", "data:", "blob:")
    assert [url for url in visit.requests if not url.startswith(inside)] == []
