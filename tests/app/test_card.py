"""/models/{name}/versions/{version}/card: what it tells of each task."""

import gzip
from typing import Any

import pytest

from app.schemas.card import CardResponse
from tests.app.cards import TASKS
from tests.app.conftest import MakeService
from tests.app.running import Service, answered, carry_out, regression_columns
from tests.app.test_archives import exported, send, unpacked

HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}  # as browsers ask


def card(service: Service, model: str, version: int | str = 1) -> dict[str, Any]:
    answer = answered(service.http.get(f"/models/{model}/versions/{version}/card"))
    return dict(answer.json())


@pytest.mark.parametrize("model", TASKS)
def test_a_card_tells_what_its_schema_says(cards: Service, model: str) -> None:
    found = card(cards, model)
    assert CardResponse.model_validate(found).model_dump(mode="json") == found
    version = cards.http.get(f"/models/{model}/versions/1").json()
    for part in ("variants", "notes", "baselines", "recommended_variant", "selection"):
        assert found[part] == version[part], part
    assert found["rows"]["learned"] > found["rows"]["held_out"] > 0
    assert [c["role"] for c in found["rows"]["columns"]][-1] == "target"
    assert found["learning_curve"][0]["epoch"] == 1
    assert sum(found["signal_to_noise"]["counts"]) == found["num_weights"]
    assert [cut["prune"] for cut in found["signal_to_noise"]["cuts"]] == [0.5]
    assert found["limits"]
    assert set(found["limits"]).isdisjoint(version["notes"])


def test_what_is_not_there_is_a_problem(cards: Service) -> None:
    for path, accept, status in (
        ("/models/none/versions/1/card", "*/*", 404),
        ("/models/price/versions/9/card", "text/html", 404),
        ("/models/price/versions/1/card?x=1", "*/*", 422),
        ("/models/price/versions/1/card", "text/csv", 406),
    ):
        answer = cards.http.get(path, headers={"Accept": accept})
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_browser_gets_a_page_that_may_load_nothing_from_elsewhere(cards: Service) -> None:
    answer = cards.http.get("/models/price/versions/1/card", headers=HTML)
    assert answer.headers["Content-Type"].startswith("text/html")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert (
        cards.http.get("/models/price/versions/1/card").headers["Content-Type"]
        == "application/json"
    )


def test_names_are_text_and_no_markup(make_service: MakeService) -> None:
    own = make_service()
    columns = regression_columns()
    hostile = "</script><script>alert(1)</script>"
    columns[hostile] = columns.pop("size")
    columns["wood"] = [hostile if v == "oak" else v for v in columns["wood"]]
    request = {"model": "hostile", "data": {"columns": columns}, "target": "price"}
    settings = {"network": {"hidden": [2]}, "training": {"epochs": 1}, "pruning": []}
    carry_out(own.context, own.post("/train", request | settings).json()["id"])
    page = own.http.get("/models/hostile/versions/1/card", headers=HTML).text
    assert "<script>alert" not in page
    assert page.count("&lt;/script&gt;&lt;script&gt;alert(1)") >= 2


def test_the_card_travels_with_the_version(cards: Service) -> None:
    """In gzip; what is exported again is what was imported."""
    model, copy = "tree", "tree-copy"
    first = exported(cards, model)
    answered(send(cards, gzip.compress(first), copy), 201)
    again, files = unpacked(exported(cards, copy)), unpacked(first)
    assert again.pop("origin.json") != files.pop("origin.json")
    assert again == files
    there, here = card(cards, copy), card(cards, model)
    for part in ("rows", "variants", "learning_curve", "signal_to_noise", "limits"):
        assert there[part] == here[part]
    assert cards.http.delete(f"/models/{copy}").status_code == 204
