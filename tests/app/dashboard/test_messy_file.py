"""A messy German file in the browser: dropped, looked at, mended by clicks, and trained on."""

import random
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.browser import Visit, serious_problems
from tests.app.running import Service

FLATS = 120
UNKNOWN_YEARS = range(7, FLATS, 20)
"""Rows whose year is written as -999."""


@pytest.fixture
def flats(tmp_path: Path) -> Path:
    """What a spreadsheet in German writes: semicolons, decimal commas, Windows-1252."""
    rng = random.Random(0)
    lines = ["Nr;Straße;Fläche;Baujahr;Stand;Miete"]
    for row in range(FLATS):
        area = rng.uniform(30, 150)
        year = -999 if row in UNKNOWN_YEARS else rng.randint(1900, 2020)
        street = rng.choice(("Ahornweg", "Königsallee", "Marktplatz"))
        rent = round(10 * area + rng.gauss(0, 40))
        lines.append(f"{1000 + row};{street};{area:.1f};{year};2026;{rent}".replace(".", ","))
    file = tmp_path / "wohnungen.csv"
    file.write_text("\r\n".join(lines) + "\r\n", encoding="cp1252")
    return file


def drop(page: Page, service: Service, file: Path) -> None:
    page.goto(f"{service.url}/ui/datasets")
    page.get_by_label("Drop a file here, or click to choose one").set_input_files(file)


def at_data_set(page: Page, before: str = "") -> str:
    """The id of the data set whose page is shown; not the one of before."""
    expect(page).to_have_url(re.compile("/ui/datasets/ds_"))
    if before:
        expect(page).not_to_have_url(re.compile(before))
    page.wait_for_load_state()
    return page.url.rpartition("/")[2]


def row_of(page: Page, column: str) -> str:
    """The line of a column in the table of columns."""
    return page.locator(
        "table.profile tr", has=page.get_by_role("rowheader", name=column)
    ).inner_text()


def test_a_click_mends_and_the_mended_data_set_trains(
    service: Service, visit: Visit, flats: Path
) -> None:
    page = visit.page
    drop(page, service, flats)
    first = at_data_set(page)
    expect(page.get_by_role("status")).to_contain_text("to look at before you train")
    expect(page.locator("#reading + p")).to_contain_text("a semicolon between cells")
    expect(page.get_by_role("rowheader", name="Straße")).to_be_visible()
    sentinel = page.locator(".finding", has_text="-999")
    expect(sentinel).to_contain_text("line 9")
    expect(sentinel.locator(".badge")).to_have_text("warning")
    assert "Not used" in row_of(page, "Nr")

    page.get_by_role("button", name="Read “-999” in “Baujahr” as missing").click()
    mended = at_data_set(page, first)
    expect(page.get_by_role("status")).to_contain_text("“-999” in “Baujahr” is missing")
    expect(page.locator(".finding", has_text="-999")).to_have_count(0)
    assert f"{len(UNKNOWN_YEARS)} (" in row_of(page, "Baujahr")
    about = service.http.get(f"/datasets/{mended}").json()
    year = next(column for column in about["columns"] if column["name"] == "Baujahr")
    assert (year["missing"], year["min"] >= 1900) == (len(UNKNOWN_YEARS), True)

    page.get_by_role("link", name="Train on this").click()
    page.get_by_label("Column to predict").select_option(label="Miete (number)")
    expect(page.get_by_role("checkbox", name="Nr")).not_to_be_checked()
    expect(page.get_by_role("checkbox", name="Baujahr")).to_be_checked()
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page).to_have_url(re.compile("/ui/jobs/job_"))
    job = service.http.get(f"/jobs/{page.url.rpartition('/')[2]}").json()
    service.post(f"/jobs/{job['id']}/cancel")
    assert job["request"]["dataset"] == mended
    assert "Nr" not in [feature["name"] for feature in job["request"]["features"]]
    assert visit.complaints == []


def test_types_and_file_are_read_otherwise_without_an_upload(
    service: Service, visit: Visit, flats: Path
) -> None:
    page = visit.page
    drop(page, service, flats)
    first = at_data_set(page)
    apply = page.locator("#apply")
    expect(apply).to_be_disabled()
    page.get_by_label("Stand is read as").select_option("not used")
    page.get_by_label("Baujahr is read as").select_option("category")
    expect(apply).to_have_text("Read 2 columns differently")
    apply.click()
    second = at_data_set(page, first)
    expect(page.get_by_label("Baujahr is read as")).to_have_value("category")
    assert "you left it out" in row_of(page, "Stand")
    expect(page.locator("#reading ~ p")).to_contain_text(["", "“Stand” is left out"])

    page.get_by_text("Read it differently").click()
    page.get_by_role("button", name="Read it again").click()
    expect(page.get_by_role("alert").filter(visible=True)).to_have_text("Change a setting first.")
    page.get_by_label("Header").select_option("no")
    page.get_by_role("button", name="Read it again").click()
    third = at_data_set(page, second)
    about = service.http.get(f"/datasets/{third}").json()
    assert about["rows"] == FLATS + 1
    assert about["reading"]["header"] is False
    assert about["sha256"] == service.http.get(f"/datasets/{first}").json()["sha256"]

    page.goto(f"{service.url}/ui/datasets")
    expect(page.locator(f'th:has(a[href$="{second}"])')).to_contain_text("“Stand” is left out")
    assert visit.complaints == []


def test_a_refused_setting_is_shown_and_tried_again(
    service: Service, visit: Visit, flats: Path
) -> None:
    page = visit.go(f"{service.url}/ui/datasets")
    how = page.locator("#how")
    page.get_by_text("How to read the file").click()
    page.get_by_label("Encoding").fill("klingon")
    how.evaluate("fold => { fold.open = false; }")
    page.get_by_label("Drop a file here, or click to choose one").set_input_files(flats)
    expect(page.get_by_role("alert")).to_contain_text("klingon")
    expect(how).to_have_attribute("open", "")
    page.get_by_label("Encoding").fill("cp1252")
    page.get_by_role("button", name="Try again with these settings").click()
    found = service.http.get(f"/datasets/{at_data_set(page)}").json()
    assert found["reading"]["encoding"] == "cp1252"
    assert "Straße" in [column["name"] for column in found["columns"]]


@pytest.mark.parametrize(("theme", "width"), [("light", 1200), ("dark", 360)])
def test_everybody_can_read_and_use_the_findings(
    service: Service, browser: Browser, flats: Path, theme: str, width: int
) -> None:
    made = service.http.post(
        "/datasets",
        params={"name": "wohnungen.csv"},
        content=flats.read_bytes(),
        headers={"Content-Type": "text/csv"},
    ).json()
    visit = Visit(browser, "dark" if theme == "dark" else "light", width)
    for path in (
        "/ui/datasets",
        f"/ui/datasets/{made['id']}",
        f'/ui/train?request={{"dataset":"{made["id"]}","target":"Baujahr"}}',
    ):
        page = visit.go(service.url + path)
        for fold in page.locator("main details:not(figure details)").all():
            fold.evaluate("fold => { fold.open = true; }")
        assert serious_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    visit.context.close()
