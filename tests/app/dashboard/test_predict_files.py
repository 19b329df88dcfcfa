"""Files on the page of predictions that only the service can read."""

import csv
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.app.browser import Visit
from tests.app.running import Service
from tests.corpus.workbooks import xlsx

pytestmark = pytest.mark.pages

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HEADER = ("id", "day", "wet", "size", "wood")
ROWS = (
    ("007", date(2026, 1, 5), True, 0.5, "oak"),
    ("008", date(2026, 1, 6), False, None, "ash"),
    ("009", date(2026, 1, 7), True, 10_000.0, "oak"),
)


def workbook(**sheets: Sequence[Sequence[Any]]) -> Any:
    """An Excel file, as a browser's user chooses it."""
    return {"name": "rows.xlsx", "mimeType": XLSX, "buffer": xlsx(sheets)()}


def page_of(visit: Visit, service: Service) -> Page:
    page = visit.go(f"{service.url}/ui/predict?model=price&version=1")
    page.get_by_label("Paste or drop many rows").check()
    return page


def test_a_workbook_is_read_by_the_service(service: Service, visit: Visit) -> None:
    page = page_of(visit, service)
    page.get_by_label("Threshold").fill("20")
    page.locator("#file").set_input_files(workbook(May=[HEADER, *ROWS]))
    expect(page.locator("#results tbody tr")).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = list(csv.DictReader(download.value.path().read_text().splitlines()))
    inputs = [
        {"size": size, "wood": wood, "wet": wet, "day": day.isoformat()}
        for _, day, wet, size, wood in ROWS
    ]
    body = {"model": "price", "version": 1, "inputs": inputs, "exceeds": [20.0]}
    answer = service.post("/predict", body).json()
    assert [line["id"] for line in lines] == ["007", "008", "009"]
    assert [float(line["mean"]) for line in lines] == pytest.approx(answer["mean"])
    chances = answer["exceeds"][0]["probability"]
    assert [float(line["exceeds_20"]) for line in lines] == pytest.approx(chances)
    assert page.locator("#results tr.flagged th").all_inner_texts() == ["3"]
