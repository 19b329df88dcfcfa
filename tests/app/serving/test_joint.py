"""Several targets from `POST /train` to predictions on every wire, jobs, pages and the client."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.predictions.prediction_table import to_table
from credence.client import Client
from models.artifact.files import read_model
from models.joint.model import JointModel
from models.prediction.options import PredictOptions
from tests.app.running import Service, answered, refused_paths, serving
from tests.app.serving.wires import (
    carried_out,
    close,
    done,
    num_numbers,
    outputs_of,
    send_arrow,
    table_of,
    tensors,
)

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


@pytest.fixture(scope="module")
def bakery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with a model of two targets."""
    with serving(tmp_path_factory.mktemp("bakery") / "data") as service:
        dataset, _ = service.context.datasets.add_columns("bakery", columns())
        done(service, service.post("/train", {**REQUEST, "dataset": dataset.id}))
        yield service


def ask(service: Service, **options: Any) -> Any:
    return service.post("/predict", {"model": "bakery", "inputs": ROWS, **options})


def loaded(service: Service) -> JointModel:
    version = service.context.registry.get("bakery")
    model = read_model(service.context.registry.path(version))
    assert isinstance(model, JointModel)
    return model


def values() -> dict[str, np.ndarray]:
    x = np.array([np.nan if v is None else v for v in ROWS["x"]])
    return {"x": x, "day": np.array(ROWS["day"], dtype=object)}


def directly(service: Service, **options: Any) -> Any:
    return loaded(service).predict(values(), PredictOptions(**options))


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


def test_draws_of_several_targets_count(bakery: Service) -> None:
    """Of each target a quantile per draw: 100 rows × 1,000 draws had the engine for minutes."""
    model, samples = loaded(bakery), 200
    asked = model.resolve(PredictOptions(samples=samples, return_draws=True))
    plain = model.resolve(PredictOptions(samples=samples))
    assert model.values_per_sample(plain) == 2
    assert model.values_per_sample(asked) > 2 * samples / 6
    answers = [ask(bakery, samples=samples, return_draws=one) for one in (True, False)]
    numbers = [num_numbers(one.json()) for one in answers]
    counted = [3 * model.values_per_row(options) for options in (asked, plain)]
    assert 0.5 < (numbers[0] - numbers[1]) / (counted[0] - counted[1]) < 2
    refused = answered(ask(bakery, samples=5_000, return_draws=True), 413)
    assert "CREDENCE_MAX_WORK" in refused.json()["detail"]


def test_json_has_the_models_own_numbers(bakery: Service) -> None:
    options = {"intervals": (0.5, 0.9), "return_draws": True, "samples": 20, "quantiles": (0.25,)}
    answer, expected = ask(bakery, **options).json(), directly(bakery, **options)
    assert list(answer["targets"]) == ["flour", "butter"]
    for name, one in answer["targets"].items():
        own = expected.targets[name]
        assert one["mean"] == close(own.mean.tolist())
        assert one["intervals"][1]["lower"] == close(own.intervals[1].lower.tolist())
        quantiles = own["quantile"][:, 0]
        assert one["quantiles"][0]["values"] == close(quantiles.tolist())
        assert len(one["reasons"][2]) == len(own["reasons"][2])
    assert answer["mean"] == answer["targets"]["flour"]["mean"]
    assert [one["level"] for one in answer["joint"]] == [0.5, 0.9]
    found = answer["joint"][1]["intervals"]["butter"]
    assert found["lower"] == close(expected["joint.butter.lower"][:, 1].tolist())
    assert found["upper"] == close(expected["joint.butter.upper"][:, 1].tolist())
    draws = expected["joint.butter.draws"]
    np.testing.assert_allclose(answer["joint_draws"]["butter"], draws.T, rtol=1e-4, atol=1e-5)
    assert np.shape(answer["joint_draws"]["flour"]) == (20, 3)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("exceeds", [1]),
        ("costs", {"over": 1, "under": 4}),
        ("store", True),
        ("interval_kinds", ["adaptive"]),
        ("horizon", 2),
    ],
)
def test_options_that_do_not_fit_are_named(bakery: Service, option: str, value: Any) -> None:
    assert refused_paths(ask(bakery, **{option: value}))[0] == f"/{option}"


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"target": ["flour", "flour"]}, "/target/1"),
        ({"target": ["flour", "sugar"]}, "/target/1"),
        ({"target": ["flour", "open"]}, "/target/1"),
        ({"target": ["flour", "x"]}, "/features/0"),
        ({"target": []}, "/target"),
        ({"task": "forecasting"}, "/task"),
    ],
)
def test_wrong_targets_are_named(bakery: Service, wanted: Any, path: str) -> None:
    dataset = bakery.http.get("/datasets").json()["data"][0]["id"]
    response = answered(bakery.post("/train", {**REQUEST, "dataset": dataset, **wanted}), 422)
    assert response.json()["errors"][0]["path"] == path


def test_arrow_and_csv_have_columns_of_each_target(bakery: Service) -> None:
    options = {"model": "bakery", "return_draws": "true", "samples": 20}
    answer = table_of(send_arrow(bakery.http, ROWS, **options))
    expected = directly(bakery, return_draws=True, samples=20)
    assert json.loads(answer.schema.metadata[b"targets"]) == ["flour", "butter"]
    own = to_table(expected)
    for name in own.column_names:
        if name.endswith((".mean", "lower_0.9")):
            values = own.column(name).to_pylist()
            np.testing.assert_allclose(answer[name].to_pylist(), values, rtol=1e-4, atol=1e-5)
    draws = np.array(answer.column("joint.butter.draws").to_pylist())
    np.testing.assert_allclose(draws, expected["joint.butter.draws"], rtol=1e-4, atol=1e-5)
    response = send_arrow(bakery.http, ROWS, "text/csv", model="bakery")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    mean = directly(bakery).targets["butter"].mean[1]
    assert float(rows[1]["target.butter.mean"]) == close(mean)
    assert float(rows[1]["joint.flour.lower_0.9"]) < float(rows[1]["mean"])


def test_jobs_that_do_not_fit_say_why(bakery: Service) -> None:
    unlabelled, _ = bakery.context.datasets.add_columns("later", {**ROWS, "x": [1.0, 2.0, 3.0]})
    response = bakery.post("/models/bakery/acquire", {"dataset": unlabelled.id, "k": 2})
    assert response.status_code == 422
    lone, _ = bakery.context.datasets.add_columns("lone", {**ROWS, "flour": [1.0, 2.0, 3.0]})
    job = carried_out(bakery, bakery.post("/models/bakery/evaluate", {"dataset": lone.id}))
    assert "'butter'" in job["error"]["message"]
    feedback = {"model": "bakery", "inputs": ROWS, "truth": [1.0, 2.0, 3.0]}
    response = answered(bakery.post("/feedback", feedback), 422)


def test_the_open_inference_protocol_answers_the_first_target(bakery: Service) -> None:
    rows = {"x": [0.1, 1.0], "day": ["sat", "sun"]}
    answer = bakery.post("/v2/models/bakery/infer", {"inputs": tensors(rows)})
    flour = ask(bakery).json()["targets"]["flour"]["mean"]
    assert outputs_of(answer)["mean"]["data"] == close(flour[:2])


def test_the_client_reads_them(bakery: Service, tmp_path: Path) -> None:
    with Client(bakery.url) as client:
        model = client.model("bakery")
        found = model.predict(ROWS, return_draws=True, samples=20)
        version = client.version("bakery")
    expected = directly(bakery, return_draws=True, samples=20)
    assert version["joint"]["targets"][1]["target"] == "butter"
    assert found.targets == ("flour", "butter")
    butter = found.target("butter")
    np.testing.assert_allclose(butter.mean, expected.targets["butter"].mean, rtol=1e-4)
    upper = expected["joint.butter.upper"][:, 0]
    np.testing.assert_allclose(found.joint(0.9)["butter"].upper, upper, rtol=1e-4)
    draws = expected["joint.flour.draws"]
    np.testing.assert_allclose(found.joint_draws["flour"], draws.T, rtol=1e-4, atol=1e-5)
    assert butter.targets == ()
    with pytest.raises(ValueError, match="flour, butter"):
        found.target("sugar")
    with pytest.raises(ValueError, match="intervals"):
        found.joint(0.8)
