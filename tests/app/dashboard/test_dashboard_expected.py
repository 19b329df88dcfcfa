"""The page of expected scores: data sets to choose from, and a table for the chosen one."""

import re

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
    answer = service.http.get(
        "/models/price/expected", params={"dataset": dataset.id, "version": 1}
    ).json()
    rows = re.findall(r'<th scope="row">', shown.text)
    assert len(rows) == len(answer["scores"])
    assert f"{answer['scores']['rmse']['expected']:.4g}" in shown.text
    assert "actual" not in shown.text


def test_a_data_set_without_the_columns_is_refused_on_the_page(service: Service) -> None:
    dataset, _ = service.context.datasets.add_columns("other", {"z": [1.0, 2.0]})
    shown = service.http.get(PAGE, params={"dataset": dataset.id}, headers={"Accept": "text/html"})
    assert shown.status_code == 422
    assert "other cannot be used:" in shown.text
