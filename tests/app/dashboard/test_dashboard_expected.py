"""The page of expected scores: data sets to choose from, and a table for the chosen one."""

import re

from playwright.sync_api import Browser, expect

from tests.app.browser import Visit, serious_problems
from tests.app.conftest import MakeService
from tests.app.running import Service, regression_columns

PAGE = "/ui/models/price/versions/1/expected"


def test_the_page_of_a_version_leads_to_the_scores_of_a_data_set(make_service: MakeService) -> None:
    service = make_service()
    columns = regression_columns(60)
    columns.pop("price")
    dataset, _ = service.context.datasets.add_columns("next month", columns)
    assert f'href="{PAGE}"' in service.http.get("/ui/models/price/versions/1").text
    choice = service.http.get(PAGE)
    assert choice.status_code == 200
    assert f'href="{PAGE}?dataset={dataset.id}">next month</a>' in choice.text
    shown = service.http.get(PAGE, params={"dataset": dataset.id})
    assert shown.status_code == 200
    assert "As training promised." in shown.text
    answer = service.http.get(
        "/models/price/expected", params={"dataset": dataset.id, "version": 1}
    ).json()
    rows = re.findall(r'<th scope="row">', shown.text)
    assert len(rows) == len(answer["scores"])
    assert f"{answer['scores']['rmse']['expected']:.4g}" in shown.text
    assert "actual" not in shown.text


def test_an_alert_says_why(service: Service) -> None:
    columns = regression_columns(60)
    columns["size"] = [1e6 + i for i in range(60)]
    dataset, _ = service.context.datasets.add_columns("far away", columns)
    shown = service.http.get(PAGE, params={"dataset": dataset.id}).text
    assert "<strong>Alert:</strong>" in shown
    assert "100 % of the rows are unlike those of training" in shown
    assert "actual, 60 rows" in shown


def test_a_data_set_without_the_columns_is_refused_on_the_page(service: Service) -> None:
    dataset, _ = service.context.datasets.add_columns("other", {"z": [1.0, 2.0]})
    shown = service.http.get(PAGE, params={"dataset": dataset.id}, headers={"Accept": "text/html"})
    assert shown.status_code == 422
    assert "<h1>Expected scores</h1>" in shown.text
    assert "other cannot be used:" in shown.text
    assert "lacks the columns" in shown.text


def test_a_file_that_was_read_otherwise_is_uploaded_on_the_page(
    make_service: MakeService, browser: Browser
) -> None:
    """Alone, its sizes are texts; uploaded here, they are read as those of the training data."""
    own = make_service()
    sizes = ["0.5", "1.0", "a lot", "unknown", "none", "big", "small", "-1.5"]
    lines = "size,wood,wet,day\n" + "".join(f"{size},oak,true,\n" for size in sizes)
    headers = {"Content-Type": "text/csv"}
    made = own.http.post("/datasets?name=dirty.csv", content=lines, headers=headers).json()
    visit = Visit(browser)
    page = visit.go(f"{own.url}{PAGE}?dataset={made['id']}")
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text("dirty.csv cannot be used: column 'size' is of type")
    expect(alert).not_to_contain_text("`like`")
    page.get_by_label("File").set_input_files(
        {"name": "dirty.csv", "mimeType": "text/csv", "buffer": lines.encode()}
    )
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="On dirty.csv")).to_be_visible()
    expect(page.locator("#verdict")).to_contain_text("8 rows")
    assert serious_problems(page) == []
    visit.context.close()


def test_a_forecast_has_no_such_page_to_go_to(cards: Service) -> None:
    assert "/expected" not in cards.http.get("/ui/models/sales/versions/1").text
