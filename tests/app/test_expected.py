"""`GET /models/{name}/expected`, against a real server and real models."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.model import TrainedModel
from models.posteriors.variant import Variant
from tests.app.conftest import MakeService
from tests.app.running import Service, class_columns, publish, regression_columns

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
    assert "only labels can show it" in found["notes"][0]
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


def test_of_a_classifier(service: Service) -> None:
    columns = class_columns(200)
    columns["tree"][:5] = ["elm"] * 5  # no class of the model
    found = expected(service, "tree", columns)
    assert {*found["scores"]} == {"accuracy", "log_likelihood", "brier"}
    assert found["labelled_rows"] == 195
    assert any("5 labels are no class of the model" in note for note in found["notes"])
    accuracy = found["scores"]["accuracy"]
    assert 0 <= accuracy["lower"] <= accuracy["actual"] <= accuracy["upper"] <= 1


def test_labels_of_another_type_are_not_needed(service: Service) -> None:
    columns = regression_columns(50)
    columns["price"] = [f"word {i % 3}" for i in range(50)]
    assert expected(service, "price", columns)["labelled_rows"] == 0


def test_rows_unlike_training_raise_an_alert(service: Service) -> None:
    columns = without(regression_columns(100), "price")
    columns["size"] = [1e6 + i for i in range(100)]
    found = expected(service, "price", columns)
    assert found["unlike"]["leaves"]
    assert found["alert"]
    assert "100 % of the rows are unlike those of training" in found["reasons"][-1]


def test_of_many_rows_some_are_drawn_by_the_seed(service: Service) -> None:
    columns = without(regression_columns(300), "price")
    first, again, other = (
        expected(service, "price", columns, rows=60, seed=seed) for seed in (1, 1, 2)
    )
    assert (first["rows"], first["dataset_rows"], first["seed"]) == (60, 300, 1)
    assert any("60 of the 300 rows" in note for note in first["notes"])
    assert first == again
    assert first["scores"] != other["scores"]


def test_a_stored_variant_has_a_promise_of_its_own(service: Service) -> None:
    columns = without(regression_columns(50), "price")
    version = service.http.get("/models/price/versions/2").json()
    found = expected(service, "price", columns, version=2, prune=0.5)
    metrics = next(v["metrics"] for v in version["variants"] if v["prune"] == 0.5)
    assert found["scores"]["mae"]["promised"] == pytest.approx(metrics["mae"], rel=1e-6)


def _older(model: TrainedModel) -> TrainedModel:
    def forget(variant: Variant) -> Variant:
        return replace(variant, promise=None)

    return model.with_variants({p: forget(v) for p, v in model.variants_by_prune.items()})


def test_an_older_version_is_not_compared(make_service: MakeService) -> None:
    service = make_service()
    publish(service.context, "older", regression_columns(), target="price", change=_older)
    found = expected(service, "older", without(regression_columns(80), "price"))
    assert found["scores"]["rmse"]["promised"] is None
    assert found["scores"]["rmse"]["lower"] < found["scores"]["rmse"]["upper"]
    assert any("train it again" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("model", "parameters", "status", "part"),
    [
        ("price", {"dataset": "ds_none"}, 404, "ds_none"),
        ("price", {}, 422, "dataset"),
        ("price", {"dataset": "{tree}"}, 422, "lacks the columns size"),
        ("price", {"dataset": "{price}", "version": "9"}, 404, "9"),
        ("price", {"dataset": "{price}", "prune": "0.3"}, 422, "no variant with prune 0.3"),
        ("price", {"dataset": "{price}", "level": "1"}, 422, "level"),
        ("price", {"dataset": "{price}", "rows": "10001"}, 422, "10000"),
        ("price", {"dataset": "{price}", "row": "1"}, 422, "unknown parameter"),
        ("none", {"dataset": "{price}"}, 404, "none"),
    ],
)
def test_what_is_wrong_is_named(
    service: Service, model: str, parameters: dict[str, str], status: int, part: str
) -> None:
    ids = {
        name: add(service, columns())
        for name, columns in (("price", regression_columns), ("tree", class_columns))
    }
    asked = {name: value.format(**ids) for name, value in parameters.items()}
    answer = service.http.get(f"/models/{model}/expected", params=asked)
    assert answer.status_code == status
    assert part in answer.text


@pytest.mark.parametrize("model", ["sales", "lines"])
def test_forecasts_and_texts_are_refused(cards: Service, model: str) -> None:
    dataset = add(cards, {"x": [1.0, 2.0]})
    answer = cards.http.get(f"/models/{model}/expected", params={"dataset": dataset})
    assert answer.status_code == 422
    assert "does not predict rows" in answer.json()["errors"][0]["message"]
