"""/models: versions, aliases, evaluations."""

from typing import Any

from tests.app.running import Service, regression_columns

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
    answer = own.post("/models/price/evaluate", body)
    assert answer.status_code == 202, answer.text
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
    answer = own.post("/models/price/acquire", {"dataset": dataset, "k": 5})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert (job["kind"], job["status"], job["model"]) == ("acquire", "queued", "price")
    request = {"model": "price", "dataset": dataset, "version": 2, "k": 5}
    assert job["request"] == request | {"batch": True, "prune": 0.0}
