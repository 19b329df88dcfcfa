"""/models: versions, aliases, evaluations, expected scores, cards."""

import gzip
from functools import partial
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.schemas.card import CardResponse
from tests.app.cards import TASKS
from tests.app.conftest import MakeService
from tests.app.running import (
    Service,
    answered,
    carry_out,
    class_columns,
    regression_columns,
    serving,
)
from tests.app.test_archives import exported, send, unpacked
from tests.waiting import wait_until

ROW = [[1.0, "oak", True, None]]


def predict(service: Service, **body: Any) -> Any:
    return service.post("/predict", {"model": "price", "inputs": ROW} | body)


def test_a_version_shows_what_the_contract_lists(service: Service) -> None:
    version = service.http.get("/models/price/versions/1").json()
    assert version.items() >= {"model": "price", "version": 1, "aliases": ["champion"]}.items()
    assert version["task"] == "regression"
    assert version["target"] == "price"
    assert version["features"][0] == {"name": "size", "type": "number"}
    assert "classes" not in version
    assert [v["prune"] for v in version["variants"]] == [0.0, 0.5]
    full, half = version["variants"]
    assert half["num_weights"] < full["num_weights"] == version["num_weights"]
    assert set(full) == {
        "prune", "num_weights", "bytes", "calibration", "metrics", "out_of_distribution",
        "auto",
    }  # fmt: skip
    assert {"log_likelihood", "rmse", "mae", "crps", "coverage"} <= version["metrics"].keys()
    assert version["network"]["hidden"] == [8]
    assert version["method"]["kind"] == "bbb"
    assert version["training"]["epochs"] == 20
    assert version["dataset"].startswith("ds_")
    assert version["job"].startswith("job_")
    assert version["created_at"].endswith("Z")
    assert service.http.get("/models/price/versions/champion").json() == version
    tree = service.http.get("/models/tree/versions/1").json()
    assert tree["classes"] == ["alder", "beech", "oak"]


def test_models_are_listed_and_summarised(service: Service) -> None:
    page = service.http.get("/models?limit=1").json()
    assert [(m["name"], m["version"]) for m in page["data"]] == [("price", 2)]
    rest = service.http.get("/models", params={"cursor": page["next_cursor"]}).json()
    assert [m["name"] for m in rest["data"]] == ["tree"]
    model = service.http.get("/models/price").json()
    assert model["aliases"] == {"champion": 1}
    assert [v["version"] for v in model["versions"]] == [2, 1]


def test_an_alias_moves_at_once(own: Service) -> None:
    assert predict(own, version="champion").json()["version"] == 1
    moved = own.http.put("/models/price/aliases/champion", json={"version": 2})
    assert (moved.status_code, moved.json()["aliases"]) == (200, ["champion"])
    assert predict(own, version="champion").json()["version"] == 2
    assert own.http.delete("/models/price/aliases/champion").status_code == 204
    assert predict(own, version="champion").status_code == 404


def test_a_wrong_alias_is_refused(service: Service) -> None:
    for path, body, status in (
        ("price/aliases/gold", {"version": 9}, 404),
        ("none/aliases/gold", {"version": 1}, 404),
        ("price/aliases/7", {"version": 1}, 422),
        ("price/aliases/Gold", {"version": 1}, 422),
        ("price/aliases/gold", {"version": "1"}, 422),
    ):
        assert service.http.put(f"/models/{path}", json=body).status_code == status, path


def test_deleted_versions_and_models_answer_no_more(own: Service) -> None:
    assert predict(own, version=1).status_code == 200
    assert own.http.delete("/models/price/versions/1").status_code == 409
    own.http.delete("/models/price/aliases/champion")
    assert own.http.delete("/models/price/versions/1").status_code == 204
    assert predict(own, version=1).status_code == 404
    assert own.http.delete("/models/price").status_code == 204
    for path in ("/models/price", "/models/price/versions/2"):
        assert own.http.get(path).status_code == 404
        assert own.http.delete(path).status_code == 404
    assert predict(own).status_code == 404


def test_an_evaluation_is_a_job(own: Service) -> None:
    dataset = own.http.get("/models/price/versions/1").json()["dataset"]
    body = {"version": "champion", "dataset": dataset, "prune": 0.5}
    answer = answered(own.post("/models/price/evaluate", body), 202)
    job = answer.json()
    assert (job["kind"], job["status"], job["model"]) == ("evaluate", "queued", "price")
    assert job["request"] == {"model": "price", "dataset": dataset, "version": 1, "prune": 0.5}


def test_a_wrong_evaluation_or_choice_of_rows_is_refused(service: Service) -> None:
    price, tree = (
        service.http.get(f"/models/{model}/versions/1").json()["dataset"]
        for model in ("price", "tree")
    )
    for what, change, status in (
        ("evaluate", {"prune": 0.9}, 422),
        ("evaluate", {"dataset": "ds_none"}, 422),
        ("evaluate", {"dataset": tree}, 422),
        ("evaluate", {"version": 9}, 404),
        ("acquire", {"k": 0}, 422),
        ("acquire", {"k": 1001}, 422),
    ):
        answer = service.post(f"/models/price/{what}", {"dataset": price} | change)
        assert answer.status_code == status, answer.text
        if status == 422:
            (name,) = change
            assert answer.json()["errors"][0]["path"] == f"/{name}"


def test_a_choice_of_rows_to_label_is_a_job(own: Service) -> None:
    """It needs no column of the target: these rows have no label yet."""
    rows = {name: values for name, values in regression_columns(20).items() if name != "price"}
    dataset = own.context.datasets.add_columns("new", rows)[0].id
    answer = answered(own.post("/models/price/acquire", {"dataset": dataset, "k": 5}), 202)
    job = answer.json()
    assert (job["kind"], job["status"], job["model"]) == ("acquire", "queued", "price")
    request = {"model": "price", "dataset": dataset, "version": 2, "k": 5}
    assert job["request"] == request | {"batch": True, "prune": 0.0}


Columns = dict[str, list[Any]]


def add(service: Service, columns: Columns) -> str:
    dataset, _ = service.context.datasets.add_columns("rows", columns)
    return dataset.id


def expected(service: Service, model: str, columns: Columns, **parameters: Any) -> Any:
    asked = {"dataset": add(service, columns), **parameters}
    answer = answered(service.http.get(f"/models/{model}/expected", params=asked))
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


def test_every_replica_forgets_a_model_that_another_one_deleted(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counters and models of those that were deleted stayed in each process for its lifetime."""
    monkeypatch.setattr("app.serving.deleted_models.SECONDS", 0.1)
    first = make_service()
    with serving(first.context.settings.data_dir) as second:
        for service in (first, second):
            answer = service.post("/predict", {"model": "price", "inputs": ROW, "store": True})
            labels = {"prediction": answer.json()["id"], "truth": [1.0]}
            assert service.post("/feedback", labels).status_code == 201
            other = {"model": "tree", "inputs": [[0.0, 0.0, [[0, 0], [0, 0]]]]}
            assert service.post("/predict", other).status_code == 200
            assert len(metrics_of(service, "price")) > 20
        assert first.http.delete("/models/price").status_code == 204
        for service in (first, second):
            assert metrics_of(service, "price") == set()
            assert len(metrics_of(service, "tree")) > 10
            wait_until(partial(is_all_in_memory, service, "tree"))


def is_all_in_memory(service: Service, model: str) -> bool:
    loaded = service.services.predictor.cache.loaded()
    return {entry.version.model for entry in loaded} == {model}


def metrics_of(service: Service, model: str) -> set[str]:
    """The names of the metrics with a series of the model."""
    families = text_string_to_metric_families(service.http.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    return {sample.name for sample in samples if sample.labels.get("model") == model}
