"""The search field of every page, by keyboard alone."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from app.routers.pages.search import MOST
from app.ui.terms import TERMS, anchor
from core.access.keys import Scope
from tests.app.browser import Theme, Visit, serious_problems
from tests.app.running import Service, serving
from tests.app.test_keys import ADMIN_KEY, bearer, key_file, made


@pytest.fixture(scope="module")
def locked(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("locked-search")
    shutil.copytree(trained, folder / "data")
    with serving(folder / "data", admin_key_file=key_file(folder)) as service:
        yield service


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


def test_keys_choose_what_is_found(service: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{service.url}/ui/system")
    field = page.get_by_role("combobox", name="Search")
    typed(page, "pri")
    jobs = service.http.get("/jobs?limit=1000").json()["data"]
    data = service.http.get("/datasets?limit=1000").json()["data"]
    numbers = {
        "Models": 1,
        "Data sets": min(MOST, sum("pri" in one["name"] for one in data)),
        "Jobs": min(MOST, sum("pri" in one["model"] for one in jobs)),
    }
    for name, count in numbers.items():
        group = page.get_by_role("group", name=name)
        expect(group.get_by_role("option")).to_have_count(count)
    expect(page.locator("#search-status")).to_have_text(f"{sum(numbers.values())} found")
    assert chosen(page) == "price regression of price"
    page.keyboard.press("ArrowUp")
    assert chosen(page) == page.get_by_role("option").last.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    first = page.get_by_role("group", name="Data sets").get_by_role("option").first
    assert chosen(page) == first.inner_text()
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#found")).to_be_hidden()
    assert field.input_value() == "pri"
    page.keyboard.press("ArrowDown")
    assert chosen(page) == "price regression of price"
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/models/price")
    assert visit.complaints == []
    visit.context.close()


def test_enter_waits_for_the_list_of_what_was_typed(service: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{service.url}/ui/system")
    held: list[Route] = []
    page.route("**/ui/search?*", lambda route: held.append(route))  # noqa: PLW0108
    with page.expect_request("**/ui/search?*"):
        typed(page, "tree")
    page.keyboard.press("Enter")
    assert page.url.endswith("/ui/system")
    held.pop().continue_()
    page.wait_for_url("**/ui/models/tree")
    visit.context.close()


def test_terms_are_found_and_explained(service: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{service.url}/ui/system")
    typed(page, "conformal int")
    option = page.get_by_role("group", name="Help").get_by_role("option").first
    expect(option).to_contain_text("Conformal interval")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/help#conformal-interval")
    expect(page.locator("#conformal-interval")).to_be_in_viewport()
    page.goto(f"{service.url}/ui/models")
    page.keyboard.press("?")
    page.wait_for_url("**/ui/help")
    assert serious_problems(page) == []
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize("text", ["coverage", "calibration", "drift", "epistemic", "baseline"])
def test_the_words_of_the_pages_are_found(service: Service, text: str) -> None:
    assert 'href="/ui/help#' in service.http.get(f"/ui/search?text={text}").text


def test_terms_are_those_of_the_glossary() -> None:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", Path("docs/glossary.md").read_text())
    glossary = " ".join(re.sub(r"[`*]", "", text).split())
    for name, told in TERMS.items():
        assert f"{name}" in glossary
        assert f": {told}" in glossary, name
    assert len({anchor(name) for name in TERMS}) == len(TERMS)


def test_a_slash_in_a_field_is_a_slash(service: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{service.url}/ui/predict?model=price")
    field = page.get_by_label("wood")
    field.fill("")
    field.press("/")
    assert field.input_value() == "/"
    visit.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_found_leads_on_and_fits_a_phone(
    service: Service, browser: Browser, theme: Theme
) -> None:
    visit = Visit(browser, theme, width=390)
    page = visit.go(f"{service.url}/ui/models")
    typed(page, "pr")
    expect(page.get_by_role("option").first).to_be_visible()
    assert serious_problems(page) == []
    page.keyboard.insert_text('<b>"')
    expect(page.locator("#found-none")).to_contain_text(
        'No model, data set, job or term has “pr<b>"” in its name.'
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator("#found").bounding_box()
    assert box is not None
    assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    assert serious_problems(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/datasets")
    assert visit.complaints == []
    visit.context.close()


def test_a_key_of_scope_predict_finds_only_models(locked: Service) -> None:
    def found(key: str) -> str:
        return locked.http.get("/ui/search?text=price", headers=bearer(key)).text

    assert "/ui/models/price" in found(made(locked, Scope.PREDICT))
    assert "/ui/datasets/" not in found(made(locked, Scope.PREDICT))
    assert "/ui/jobs/" not in found(made(locked, Scope.PREDICT))
    assert "/ui/datasets/" in found(ADMIN_KEY)
    assert "/ui/jobs/" in found(ADMIN_KEY)


def test_beside_the_button_to_sign_out_it_fits_a_phone(locked: Service, browser: Browser) -> None:
    visit = Visit(browser, width=390)
    page = visit.go(f"{locked.url}/ui/sign-in?next=/ui/models")
    page.get_by_label("Key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{locked.url}/ui/models")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for place in (page.get_by_role("combobox"), page.get_by_role("button", name="Sign out")):
        box = place.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    assert serious_problems(page) == []
    visit.context.close()


def test_without_a_key_there_is_no_search(locked: Service, browser: Browser) -> None:
    visit = Visit(browser)
    page = visit.go(f"{locked.url}/ui/sign-in")
    expect(page.get_by_role("combobox")).to_have_count(0)
    assert visit.complaints == []
    visit.context.close()
