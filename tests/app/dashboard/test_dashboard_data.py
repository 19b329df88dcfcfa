"""Data sets in a browser: files by click and drop, findings and fixes, workbooks."""

import csv
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.ui.findings import mend_all
from core.datasets.findings.finding import Code, Finding, Severity, fix_column
from credence.client.files.media_types import MEDIA_TYPES
from tests.app.browser import Visit
from tests.app.running import Service
from tests.corpus.workbooks import xlsx

DROP = """(text) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], "dropped.csv"));
  document.querySelector(".drop").dispatchEvent(
    new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: carried }));
}"""


def tells_of(page: Page, name: str, rows: int) -> None:
    """The page of a new data set."""
    expect(page).to_have_url(re.compile("/ui/datasets/ds_"))
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.locator(".facts")).to_contain_text(f"rows{rows:,}")
    page.wait_for_load_state()  # its scripts, without which buttons do nothing


def test_the_browser_knows_the_suffixes_that_the_command_line_knows() -> None:
    script = Path("app/ui/static/media_types.js").read_text()
    assert dict(re.findall(r'^  "(\.\w+)": "(.+)",$', script, re.MULTILINE)) == MEDIA_TYPES


@pytest.mark.pages
def test_the_example_is_one_click(service: Service, visit: Visit) -> None:
    page = visit.go(f"{service.url}/ui/datasets")
    page.get_by_role("button", name="Try it with example data").click()
    tells_of(page, "bike-hires.csv", 1344)
    expect(page.get_by_role("row", name="wind number")).to_contain_text("46 (3.4 %)")
    page.get_by_role("link", name="Train on this").click()
    expect(page.get_by_label("Column to predict")).to_be_visible()


@pytest.mark.pages
def test_a_file_comes_by_click_and_by_drop(service: Service, visit: Visit, tmp_path: Path) -> None:
    page = visit.go(f"{service.url}/ui/datasets")
    page.evaluate(DROP, "x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(1234)))
    tells_of(page, "dropped.csv", 1234)
    page.goto(f"{service.url}/ui/datasets")
    file = tmp_path / "chosen.csv"
    file.write_text("a,b\n1,2\n3,4\n5,6\n")
    page.get_by_label("Drop a file here, or click to choose one").set_input_files(file)
    tells_of(page, "chosen.csv", 3)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{service.url}/ui/datasets")
    expect(page.get_by_role("link", name="chosen.csv", exact=True)).to_have_count(0)


def finding(code: Code, severity: Severity, **fix: Any) -> Finding:
    return Finding(code=code, severity=severity, message=code, fix=fix or None)


def of_column(code: Code, severity: Severity, name: str, **changes: Any) -> Finding:
    return finding(code, severity, **fix_column(name, **changes))


def test_fixes_that_mend_are_applied_at_once() -> None:
    found = mend_all(
        [
            of_column("leak", "error", "copy", use=False),
            of_column("sentinel", "warning", "t", missing=["-999"]),
            of_column("mostly_numeric", "warning", "t", type="number", missing=["-"]),
            of_column("thousands", "error", "price", type="number", format="1.234,56"),
            of_column("misspelt", "warning", "city", levels={"Berln": "Berlin"}),
            of_column("many_levels", "warning", "city", use=False),
            finding("duplicate_rows", "warning", options={"unique_rows": True}),
        ]
    )
    assert found is not None
    assert found.body == {
        "columns": [
            {"name": "copy", "use": False},
            {"name": "t", "type": "number", "missing": ["-999", "-"]},
            {"name": "price", "type": "number", "format": "1.234,56"},
            {"name": "city", "levels": {"Berln": "Berlin"}, "use": False},
        ],
        "options": {"unique_rows": True},
    }


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


@pytest.mark.pages
def test_a_click_fixes_and_the_data_set_trains(service: Service, visit: Visit, flats: Path) -> None:
    page = visit.go(f"{service.url}/ui/datasets")
    page.get_by_label("Drop a file here, or click to choose one").set_input_files(flats)
    first = at_data_set(page)
    expect(page.get_by_role("rowheader", name="Straße")).to_be_visible()
    sentinel = page.locator(".finding", has_text="-999")
    expect(sentinel.locator(".badge")).to_have_text("warning")
    assert "Not used" in row_of(page, "Nr")

    page.get_by_role("button", name="Read “-999” in “Baujahr” as missing").click()
    mended = at_data_set(page, first)
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


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@pytest.mark.pages
def test_a_workbook_is_read_by_the_service(service: Service, visit: Visit) -> None:
    page = visit.go(f"{service.url}/ui/predict?model=price&version=1")
    page.get_by_label("Paste or drop many rows").check()
    page.get_by_label("Threshold").fill("20")
    names, sizes = ("id", "day", "wet", "size", "wood"), (0.5, None, 10_000.0)
    rows = [(f"00{i}", date(2026, 1, 5), True, size, "oak") for i, size in enumerate(sizes)]
    content = xlsx({"May": [names, *rows]})()
    page.locator("#file").set_input_files(
        {"name": "rows.xlsx", "mimeType": XLSX, "buffer": content}
    )
    expect(page.locator("#results tbody tr")).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.DictReader(download.value.path().read_text().splitlines()))
    inputs = [{"size": size, "wood": "oak", "wet": True, "day": "2026-01-05"} for size in sizes]
    body = {"model": "price", "version": 1, "inputs": inputs, "exceeds": [20.0]}
    answer = service.post("/predict", body).json()
    assert [line["id"] for line in lines] == ["000", "001", "002"]
    assert [float(line["mean"]) for line in lines] == pytest.approx(answer["mean"])
    chances = answer["exceeds"][0]["probability"]
    assert [float(line["exceeds_20"]) for line in lines] == pytest.approx(chances)
