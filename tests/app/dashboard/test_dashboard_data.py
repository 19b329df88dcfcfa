"""Data sets in a browser: files by click and drop, findings and fixes."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.ui.findings import mend_all
from core.datasets.findings.finding import Code, Finding, Severity, fix_column
from credence.client.files.media_types import MEDIA_TYPES
from tests.app.browser import Visit
from tests.app.running import Service

STATIC = Path("app/ui/static")
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
    script = (STATIC / "media_types.js").read_text()
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
