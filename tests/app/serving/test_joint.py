"""Several targets from `POST /train` to predictions on every wire, jobs, pages and the client."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.serving.arrow_format import MEDIA_TYPE
from credence.client import Client
from models.artifact.files import read_model
from models.joint.model import JointModel
from models.prediction.options import PredictOptions
from tests.app.running import Service, serving
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

pytestmark = pytest.mark.training

ROWS = {"x": [0.1, 1.0, None], "day": ["sat", "sun", "mon"]}
TARGETS: list[Any] = ["flour", {"name": "butter", "lower": -20}]


def columns(rows: int = 400) -> dict[str, list[Any]]:
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, rows)
    noise = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], rows)
    return {
        "x": x.tolist(),
        "day": random.choice(["sat", "sun"], rows).tolist(),
        "open": ["yes", "no"] * (rows // 2),
        "flour": (x + noise[:, 0]).tolist(),
        "butter": [None, *(5 - x + noise[:, 1]).tolist()[1:]],
    }


REQUEST: dict[str, Any] = {
    "model": "bakery",
    "target": TARGETS,
    "features": ["x", "day"],
    "network": {"kind": "mlp", "hidden": [8]},
    "training": {"epochs": 30, "fine_tune_epochs": 1, "learning_rate": 0.02},
    "pruning": [0.5],
}


def run(service: Service, path: str, body: Any) -> Any:
    """Submit a job and do it, as a worker does."""
    response = service.post(path, body)
    assert response.status_code == 202, response.text
    job = response.json()["id"]
    JobRunner(service.context, "test", WorkerMetrics(), lambda: False).wake()
    return service.http.get(f"/jobs/{job}").json()


@pytest.fixture(scope="module")
def bakery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a model of two targets."""
    with serving(tmp_path_factory.mktemp("bakery") / "data") as service:
        dataset, _ = service.context.datasets.add_columns("bakery", columns())
        job = run(service, "/train", {**REQUEST, "dataset": dataset.id})
        assert job["status"] == "succeeded", job["error"]
        yield service


def ask(service: Service, **options: Any) -> Any:
    return service.post("/predict", {"model": "bakery", "inputs": ROWS, **options})


def directly(service: Service, **options: Any) -> Any:
    version = service.context.registry.get("bakery")
    model = read_model(service.context.registry.path(version))
    assert isinstance(model, JointModel)
    x = np.array([np.nan if v is None else v for v in ROWS["x"]])
    days = np.array(ROWS["day"], dtype=object)
    return model.predict({"x": x, "day": days}, PredictOptions(**options))


def test_a_version_shows_every_target(bakery: Service) -> None:
    version = bakery.http.get("/models/bakery/versions/1").json()
    joint = version["joint"]
    assert [one["target"] for one in joint["targets"]] == ["flour", "butter"]
    assert joint["targets"][0]["metrics"] == version["metrics"]
    assert joint["targets"][1]["metrics"]["rmse"] != version["metrics"]["rmse"]
    assert [one["kind"] for one in joint["targets"][1]["baselines"]]
    assert joint["correlation"][0][1] == pytest.approx(0.8, abs=0.25)  # of 39 rows
    assert joint["rows"] == 39
    assert version["metrics"]["joint_coverage"].keys() == {"0.5", "0.9"}
    assert version["target"] == "flour"
    assert "joint" not in bakery.http.get("/models/bakery").json()["versions"][0]
    assert any("without a target" in note for note in version["notes"])
    card = bakery.http.get("/models/bakery/versions/1/card")
    assert card.status_code == 200


def test_the_job_shows_the_request_and_its_progress(bakery: Service) -> None:
    (job,) = [j for j in bakery.http.get("/jobs").json()["data"] if j["kind"] == "train"]
    assert job["request"]["target"] == TARGETS
    assert "others" not in job["request"]
    assert job["progress"]["stage"].startswith("butter: ")
    assert job["progress"]["fraction"] == 1.0
    again = bakery.post("/train", job["request"])
    assert again.status_code == 202, again.text


def test_json_has_the_models_own_numbers(bakery: Service) -> None:
    options = {"intervals": (0.5, 0.9), "return_draws": True, "samples": 20, "quantiles": (0.25,)}
    answer, expected = ask(bakery, **options).json(), directly(bakery, **options)
    assert list(answer["targets"]) == ["flour", "butter"]
    for name, one in answer["targets"].items():
        own = expected.targets[name]
        assert one["mean"] == pytest.approx(own.mean.tolist())
        assert one["intervals"][1]["lower"] == pytest.approx(own.intervals[1].lower.tolist())
        quantiles = own.answers["quantiles"].values[:, 0]
        assert one["quantiles"][0]["values"] == pytest.approx(quantiles.tolist())
        assert len(one["reasons"][2]) == len(own.answers["reasons"].rows[2])
    assert answer["mean"] == answer["targets"]["flour"]["mean"]
    joint = expected.answers["joint"]
    assert [one["level"] for one in answer["joint"]] == [0.5, 0.9]
    found = answer["joint"][1]["intervals"]["butter"]
    assert found["lower"] == pytest.approx(joint.lower[:, 1, 1].tolist())
    assert found["upper"] == pytest.approx(joint.upper[:, 1, 1].tolist())
    draws = expected.answers["joint_draws"].values
    np.testing.assert_allclose(answer["joint_draws"]["butter"], draws[:, 1].T, rtol=1e-6)
    assert np.shape(answer["joint_draws"]["flour"]) == (20, 3)


def test_pruned_variants_answer_too(bakery: Service) -> None:
    full, pruned = (ask(bakery, prune=prune).json() for prune in (0.0, 0.5))
    assert full["joint"] != pruned["joint"]
    assert full["targets"]["butter"]["mean"] != pruned["targets"]["butter"]["mean"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("exceeds", [1]),
        ("costs", {"over": 1, "under": 4}),
        ("abstain_above", 1),
        ("target_mc_error", 0.1),
        ("store", True),
        ("interval_kinds", ["adaptive"]),
        ("set_level", 0.9),
        ("horizon", 2),
    ],
)
def test_options_that_do_not_fit_are_named(bakery: Service, option: str, value: Any) -> None:
    response = ask(bakery, **{option: value})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == f"/{option}"


def test_densities_are_of_each_target(bakery: Service) -> None:
    answer = ask(bakery, density={"points": 8}).json()
    grids = [np.array(one["density"]["values"]) for one in answer["targets"].values()]
    assert grids[0].mean() == pytest.approx(np.mean(directly(bakery).targets["flour"].mean), abs=1)
    assert grids[1].mean() > grids[0].mean() + 3


def test_explanations_are_of_each_target(bakery: Service) -> None:
    answer = ask(bakery, explain=True, samples=10).json()
    for one in answer["targets"].values():
        assert one["contributions"]["features"] == ["x", "day"]
    flour, butter = (np.array(one["contributions"]["mean"]) for one in answer["targets"].values())
    assert np.sign(flour[1, 0]) != np.sign(butter[1, 0])  # more of x: more flour, less butter


@pytest.mark.parametrize(
    ("wanted", "path", "said"),
    [
        ({"target": ["flour", "flour"]}, "/target/1", "twice"),
        ({"target": ["flour", "sugar"]}, "/target/1", "no column 'sugar'"),
        ({"target": ["flour", "open"]}, "/target/1", "'open' would be a classification"),
        ({"target": ["flour", "x"]}, "/features/0", "'x' is a target"),
        ({"target": ["flour", 3]}, "/target/1", "must be"),
        ({"target": []}, "/target", "one to 16 columns"),
        ({"task": "forecasting"}, "/task", "several targets are numbers"),
    ],
)
def test_wrong_targets_are_named(bakery: Service, wanted: Any, path: str, said: str) -> None:
    dataset = bakery.http.get("/datasets").json()["data"][0]["id"]
    response = bakery.post("/train", {**REQUEST, "dataset": dataset, **wanted})
    assert response.status_code == 422, response.text
    (error, *_) = response.json()["errors"]
    assert error["path"] == path
    assert said in error["message"]


def test_arrow_and_csv_have_columns_of_each_target(bakery: Service) -> None:
    sink = io.BytesIO()
    table = pa.table(ROWS)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    response = bakery.http.post(
        "/predict",
        params={"model": "bakery", "return_draws": "true", "samples": 20},
        content=sink.getvalue(),
        headers={"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE},
    )
    answer = pa.ipc.open_stream(response.content).read_all()
    expected = directly(bakery, return_draws=True, samples=20)
    assert json.loads(answer.schema.metadata[b"targets"]) == ["flour", "butter"]
    for name, values in expected.columns().items():
        if name.endswith((".mean", "lower_0.9")):
            # The kernels that a server chooses by measuring may round the last digit otherwise.
            np.testing.assert_allclose(answer.column(name).to_pylist(), values, rtol=1e-6)
    draws = np.array(answer.column("joint.butter.draws").to_pylist())
    np.testing.assert_allclose(draws, expected.answers["joint_draws"].values[:, 1], rtol=1e-6)
    text = "x,day\n0.1,sat\n1,sun\n,mon\n"
    headers = {"Content-Type": "text/csv", "Accept": "text/csv"}
    response = bakery.http.post(
        "/predict", params={"model": "bakery"}, content=text, headers=headers
    )
    rows = list(csv.DictReader(io.StringIO(response.text)))
    mean = directly(bakery).targets["butter"].mean[1]
    assert float(rows[1]["target.butter.mean"]) == pytest.approx(mean)
    assert float(rows[1]["joint.flour.lower_0.9"]) < float(rows[1]["mean"])


def test_batch_jobs_have_the_same_columns(bakery: Service) -> None:
    dataset = bakery.http.get("/datasets").json()["data"][0]["id"]
    body = {"model": "bakery", "dataset": dataset, "chunk_rows": 150}
    response = bakery.post("/predict/batch", body)
    job = response.json()["id"]
    while bakery.context.jobs.queued_ids(job):
        JobRunner(bakery.context, "test", WorkerMetrics(), lambda: False).wake()
    result = bakery.http.get(f"/jobs/{job}/result", follow_redirects=True)
    assert result.status_code == 200, bakery.http.get(f"/jobs/{job}").text
    table = pq.read_table(io.BytesIO(result.content))
    assert table.num_rows == 400
    truth = columns()
    inside = [
        lower <= y <= upper
        for target in ("flour", "butter")
        for lower, y, upper in zip(
            table.column(f"joint.{target}.lower_0.9").to_pylist(),
            [5.0 if y is None else y for y in truth[target]],
            table.column(f"joint.{target}.upper_0.9").to_pylist(),
            strict=True,
        )
    ]
    assert np.mean(inside) > 0.9


def test_evaluations_have_the_metrics_of_each_target(bakery: Service) -> None:
    dataset = bakery.http.get("/datasets").json()["data"][0]["id"]
    job = run(bakery, "/models/bakery/evaluate", {"dataset": dataset})
    assert job["status"] == "succeeded", job["error"]
    assert job["metrics"]["targets"].keys() == {"flour", "butter"}
    assert job["metrics"]["joint_coverage"]["0.9"] == pytest.approx(0.9, abs=0.15)


def test_jobs_that_do_not_fit_say_why(bakery: Service) -> None:
    unlabelled, _ = bakery.context.datasets.add_columns("later", {**ROWS, "x": [1.0, 2.0, 3.0]})
    response = bakery.post("/models/bakery/acquire", {"dataset": unlabelled.id, "k": 2})
    assert response.status_code == 422
    assert "several targets" in response.json()["errors"][0]["message"]
    lone, _ = bakery.context.datasets.add_columns("lone", {**ROWS, "flour": [1.0, 2.0, 3.0]})
    job = run(bakery, "/models/bakery/evaluate", {"dataset": lone.id})
    assert "'butter'" in job["error"]["message"]
    feedback = {"model": "bakery", "inputs": ROWS, "truth": [1.0, 2.0, 3.0]}
    response = bakery.post("/feedback", feedback)
    assert response.status_code == 422
    assert "several" in response.json()["errors"][0]["message"]


def test_an_archive_makes_the_same_model_elsewhere(bakery: Service) -> None:
    archive = bakery.http.get("/models/bakery/versions/1/archive")
    headers = {"Content-Type": "application/x-tar"}
    made = bakery.http.post("/models/copy/versions", content=archive.content, headers=headers)
    assert made.status_code == 201, made.text
    copied = bakery.post("/predict", {"model": "copy", "inputs": ROWS}).json()
    first, second = (one["joint"][0]["intervals"] for one in (copied, ask(bakery).json()))
    for target in ("flour", "butter"):
        assert first[target]["lower"] == pytest.approx(second[target]["lower"])


def test_the_open_inference_protocol_answers_the_first_target(bakery: Service) -> None:
    tensors = [
        {"name": "x", "shape": [2], "datatype": "FP64", "data": [0.1, 1.0]},
        {"name": "day", "shape": [2], "datatype": "BYTES", "data": ["sat", "sun"]},
    ]
    response = bakery.post("/v2/models/bakery/infer", {"inputs": tensors})
    mean = next(one for one in response.json()["outputs"] if one["name"] == "mean")
    flour = ask(bakery).json()["targets"]["flour"]["mean"]
    assert mean["data"] == pytest.approx(flour[:2])
    assert bakery.http.get("/v2/models/bakery").status_code == 200


def test_no_page_or_route_breaks(bakery: Service) -> None:
    job = bakery.http.get("/jobs").json()["data"][-1]["id"]
    dataset = bakery.http.get("/datasets").json()["data"][0]["id"]
    values = {"name": "bakery", "version": "1", "job_id": job, "dataset_id": dataset}
    values |= {"model": "bakery", "model_name": "bakery", "model_version": "1", "id": job}
    values |= {"webhook_id": "wh_none", "delivery_id": "msg_none", "feedback_id": "fb_none"}
    document = bakery.http.get("/openapi.json").json()
    routes = [path for path, methods in document["paths"].items() if "get" in methods]
    wanted = json.dumps({"dataset": dataset, "target": ["flour", "butter"]})
    pages = [
        "/ui/models",
        "/ui/models/bakery",
        "/ui/models/bakery/versions/1",
        "/ui/predict?model=bakery&version=1",
        "/ui/compare?versions=bakery/1/0,bakery/1/0.5",
        "/ui/jobs",
        f"/ui/jobs/{job}",
        f"/ui/train?request={wanted}",
    ]
    for route in [route for route in routes if not route.endswith("/events")] + pages:
        response = bakery.http.get(route.format(**values) if route in routes else route)
        assert response.status_code < 500, (route, response.text)
        if route in pages:
            assert response.status_code == 200, (route, response.text)


def test_the_page_shows_every_target(bakery: Service) -> None:
    page = bakery.http.get("/ui/models/bakery/versions/1").text
    assert '<h2 id="targets-title">Targets</h2>' in page
    assert "correlation with butter" in page
    assert "target%22%3A%20%5B%22flour%22%2C%20%22butter%22%5D" in page  # in "Retrain"


def test_the_client_reads_them(bakery: Service, tmp_path: Path) -> None:
    with Client(bakery.url) as client:
        model = client.model("bakery")
        found = model.predict(ROWS, return_draws=True, samples=20)
        version = client.version("bakery")
    expected = directly(bakery, return_draws=True, samples=20)
    assert version["joint"]["targets"][1]["target"] == "butter"
    assert found.targets == ("flour", "butter")
    butter = found.target("butter")
    np.testing.assert_allclose(butter.mean, expected.targets["butter"].mean)
    np.testing.assert_allclose(butter.draws, expected.targets["butter"].draws)
    own = expected.targets["butter"].intervals[0]
    np.testing.assert_allclose(butter.interval(0.9).lower, own.lower)
    joint = expected.answers["joint"]
    np.testing.assert_allclose(found.joint(0.9)["butter"].upper, joint.upper[:, 0, 1])
    draws = expected.answers["joint_draws"].values
    np.testing.assert_allclose(found.joint_draws["flour"], draws[:, 0].T)
    assert butter.targets == ()
    for call, said in (
        (lambda: found.target("sugar"), "but: flour, butter"),
        (lambda: found.joint(0.8), r"predict with intervals=\[0.8\]"),
        (butter.joint, "has one target"),
        (lambda: butter.target("flour"), "one only"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_openapi_documents_a_list(http: httpx.Client) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    kinds = [one.get("type") for one in schemas["TrainRequest"]["properties"]["target"]["anyOf"]]
    assert "array" in kinds
    assert {"targets", "joint", "joint_draws"} <= schemas["PredictResponse"]["properties"].keys()
