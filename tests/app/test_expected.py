"""`GET /models/{name}/expected`, against a real server and real models."""

from typing import Any

import numpy as np
import pytest

from tests.app.running import Service, class_columns, regression_columns

Columns = dict[str, list[Any]]


def add(service: Service, columns: Columns) -> str:
    dataset, _ = service.context.datasets.add_columns("rows", columns)
    return dataset.id


def expected(service: Service, model: str, columns: Columns, **parameters: Any) -> Any:
    asked = {"dataset": add(service, columns), **parameters}
    answer = service.http.get(f"/models/{model}/expected", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def without(columns: Columns, name: str) -> Columns:
    return {key: values for key, values in columns.items() if key != name}


def test_the_answer_has_every_score_with_its_interval(service: Service) -> None:
    columns = without(regression_columns(300), "price")
    found = expected(service, "price", columns, version="champion", level=0.8)
    assert (found["model"], found["version"], found["rows"]) == ("price", 1, 300)
    assert (found["level"], found["labelled_rows"], found["alert"]) == (0.8, 0, False)
    assert found["reasons"] == []
    metrics = service.http.get("/models/price/versions/1").json()["metrics"]
    scores = found["scores"]
    levels = {"coverage_0.9", "conformal_coverage_0.9"}
    assert {*scores} == {"rmse", "mae", "log_likelihood"} | levels
    for name in ("rmse", "mae", "log_likelihood"):
        assert scores[name]["lower"] < scores[name]["expected"] < scores[name]["upper"]
        assert scores[name]["promised"] == pytest.approx(metrics[name], rel=1e-6)
    assert scores["coverage_0.9"]["promised"] == pytest.approx(metrics["coverage"]["0.9"])
    assert "actual" not in scores["rmse"]
    wider = expected(service, "price", columns, version="champion", level=0.95)["scores"]["rmse"]
    assert wider["upper"] - wider["lower"] > scores["rmse"]["upper"] - scores["rmse"]["lower"]


def test_labels_change_nothing_but_what_they_show(service: Service) -> None:
    columns = regression_columns(300)
    columns["price"][:100] = [None] * 100
    labelled = expected(service, "price", columns)
    plain = expected(service, "price", without(columns, "price"))
    assert labelled["labelled_rows"] == 200
    body = {"model": "price", "inputs": without(columns, "price")}
    means = service.post("/predict", body).json()["mean"]
    errors = np.array(means[100:]) - np.array(columns["price"][100:])
    assert labelled["scores"]["rmse"].pop("actual") == pytest.approx(
        float(np.sqrt(np.mean(errors**2))), rel=1e-4
    )
    for score in labelled["scores"].values():
        score.pop("actual", None)
    assert labelled["scores"] == plain["scores"]


def test_rows_unlike_training_raise_an_alert(service: Service) -> None:
    columns = without(regression_columns(100), "price")
    columns["size"] = [1e6 + i for i in range(100)]
    found = expected(service, "price", columns)
    assert found["unlike"]["leaves"]
    assert found["alert"]
    assert found["reasons"]


def test_what_is_wrong_is_named(service: Service, cards: Service) -> None:
    price, tree = (add(service, columns()) for columns in (regression_columns, class_columns))
    for model, parameters, status, part in (
        ("price", {"dataset": "ds_none"}, 404, "ds_none"),
        ("price", {}, 422, "dataset"),
        ("price", {"dataset": tree}, 422, "size"),
        ("price", {"dataset": price, "version": "9"}, 404, "9"),
        ("price", {"dataset": price, "prune": "0.3"}, 422, "prune"),
        ("price", {"dataset": price, "level": "1"}, 422, "level"),
        ("price", {"dataset": price, "rows": "10001"}, 422, "rows"),
        ("none", {"dataset": price}, 404, "none"),
    ):
        answer = service.http.get(f"/models/{model}/expected", params=parameters)
        assert answer.status_code == status, parameters
        assert part in answer.text
    dataset = add(cards, {"x": [1.0, 2.0]})
    for model in ("sales", "lines"):  # these predict no rows
        answer = cards.http.get(f"/models/{model}/expected", params={"dataset": dataset})
        assert answer.status_code == 422
