"""What errors cost, in the form of a prediction: the page shows the action of the service."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from app.ui.format import format_value
from core.context import open_context
from core.settings import load_settings
from tests.app.browser import Visit
from tests.app.dashboard.test_dashboard_views import facts
from tests.app.running import Service, publish, regression_columns, serving

pytestmark = pytest.mark.pages


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A regression and a classifier of two classes, of the same feature."""
    data_dir = tmp_path_factory.mktemp("decisions")
    context = open_context(load_settings(data_dir=data_dir))
    size = [value or 0.0 for value in regression_columns()["size"]]
    price = regression_columns()["price"]
    publish(context, "price", {"size": size, "price": price}, target="price")
    kind = ["large" if value > 0 else "small" for value in price]
    publish(context, "kind", {"size": size, "kind": kind}, target="kind")
    context.close()
    with serving(data_dir) as service:
        yield service


def decisions(service: Service, model: str, costs: Any) -> Any:
    body = {"model": model, "inputs": [{"size": 0.1}], "costs": costs}
    return service.post("/predict", body).json()["decisions"]


def test_a_number_to_act_on(small: Service, visit: Visit) -> None:
    page = visit.go(f"{small.url}/ui/predict?model=price")
    page.get_by_label("size").fill("0.1")
    page.get_by_text("Cost of errors").click()
    page.get_by_label("Cost of one unit too many").fill("1")
    page.get_by_label("Cost of one unit too few").fill("4")
    page.get_by_label("Cost of asking a person").fill("0")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#summary")).to_contain_text("ask a person")
    found = decisions(small, "price", {"over": 1, "under": 4, "abstain": 0})
    told = facts(page, "#facts")
    assert told["action"] == format_value(found["action"][0])
    assert told["expected cost"] == format_value(found["expected_cost"][0])


def test_an_action_among_classes(small: Service, visit: Visit) -> None:
    page = visit.go(f"{small.url}/ui/predict?model=kind")
    page.get_by_label("size").fill("0.1")
    page.get_by_text("Cost of errors").click()
    page.get_by_label("acting as large if it is small").fill("1")
    page.get_by_label("acting as small if it is large").fill("1000")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#facts")).to_contain_text("expected cost")
    found = decisions(small, "kind", {"matrix": [[0, 1], [1000, 0]]})
    assert facts(page, "#facts")["action"] == found["action"][0] == "large"
