"""POST /predict: the answer is the model's own, whatever form the rows come in."""

from typing import Any

import httpx
import numpy as np
import pytest

from core.inputs.records import decode
from models.artifact.files import read_model
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.app.running import CLASSES, Service, answered
from tests.app.serving.wires import close
from tests.app.test_bodies import problem

ROWS: list[dict[str, Any]] = [
    {"size": 1.5, "wood": "oak", "wet": True, "day": "2026-01-05T00:00:00Z"},
    {"size": None, "wood": None, "wet": None, "day": None},
    {"size": -1, "wood": "never seen", "wet": False, "day": "2026-01-05T01:30:00+01:30"},
]
FEATURES = ["size", "wood", "wet", "day"]
TREES = [{"x": 0.1, "y": 0.2, "image": [[0.1, 0.0], [0.0, 0.2]]}]


def ask(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = answered(http.post("/predict", json={"model": "price", "inputs": ROWS} | body))
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def directly(service: Service, name: str, rows: list[Any], **options: Any) -> RowPrediction:
    """What the model says when it is called without the service."""
    version = service.context.registry.get(name, None)
    model: TabularModel = read_model(service.context.registry.path(version))
    return model.predict(decode(rows, model.inputs), PredictOptions(**options))


def test_numbers_have_the_contracts_fields(service: Service, http: httpx.Client) -> None:
    answer = ask(http, samples=30, seed=7, prune=0.5, intervals=[0.5, 0.9])
    expected = directly(service, "price", ROWS, samples=30, seed=7, prune=0.5, intervals=(0.5, 0.9))

    assert list(answer) == [
        "model", "version", "prune", "samples", "seed", "sampler",
        "mean", "median", "variance", "intervals", "mc_error", "out_of_distribution", "ood_score",
        "reasons",
        "timings_ms",
    ]  # fmt: skip
    assert (answer["model"], answer["version"]) == ("price", 2)
    assert (answer["prune"], answer["samples"], answer["seed"]) == (0.5, 30, 7)
    assert answer["mean"] == close(expected.mean.tolist())
    for kind in ("aleatoric", "epistemic", "total"):
        assert answer["variance"][kind] == close(expected.variance[kind].tolist())
    assert [(i["kind"], i["level"]) for i in answer["intervals"]] == [
        ("credible", 0.5), ("credible", 0.9), ("conformal", 0.5), ("conformal", 0.9),
    ]  # fmt: skip
    for given, interval in zip(answer["intervals"], expected.intervals, strict=True):
        assert list(given) == ["level", "kind", "lower", "upper"]
        bounds = np.where(np.isfinite(interval.lower), interval.lower, None)
        assert given["lower"] == close(bounds.tolist())
    assert expected["mc_error"] is not None
    assert answer["mc_error"] == close(expected["mc_error"].tolist())
    assert answer["out_of_distribution"] == expected.out_of_distribution.tolist()
    assert answer["ood_score"] == close(expected["ood_score"].tolist())
    timings = answer["timings_ms"]
    assert timings["total"] >= timings["queue"] + timings["compute"] > 0


def test_classes_have_probabilities_and_entropies(service: Service, http: httpx.Client) -> None:
    answer = ask(http, model="tree", inputs=TREES, samples=10)
    expected = directly(service, "tree", TREES, samples=10)

    assert answer["classes"] == list(CLASSES)
    assert answer["labels"] == expected.labels
    assert answer["probabilities"] == answer["mean"] == close(expected.mean.tolist())
    assert np.shape(answer["variance"]["epistemic"]) == (1, 3)
    assert expected.entropy is not None
    for kind in ("total", "aleatoric", "epistemic"):
        assert answer["entropy"][kind] == close(expected.entropy[kind].tolist())
    assert answer["intervals"] == []


def test_sets_of_classes_are_of_the_kinds_that_are_asked_for(http: httpx.Client) -> None:
    answer = ask(http, model="tree", inputs=TREES * 2, set_level=0.9)
    assert [one["kind"] for one in answer["sets"]] == ["credible", "conformal"]
    for one in answer["sets"]:
        assert one["level"] == 0.9
        assert [row[0] for row in one["classes"]] == answer["labels"]
    shares = dict(zip(answer["classes"], answer["probabilities"][0], strict=True))
    assert sum(shares[name] for name in answer["sets"][0]["classes"][0]) >= 0.9
    credible = ask(http, model="tree", inputs=TREES * 2, set_level=0.9, interval_kinds=["credible"])
    assert credible["sets"] == answer["sets"][:1]
    assert "sets" not in ask(http, model="tree", inputs=TREES)
    refused = http.post("/predict", json={"model": "price", "inputs": ROWS, "set_level": 0.9})
    assert problem(refused, 422)["errors"][0]["path"] == "/set_level"
    refused = http.post("/predict", json={"model": "tree", "inputs": TREES, "set_level": 1})
    assert problem(refused, 422)["errors"][0]["path"] == "/set_level"


def test_without_a_seed_equal_questions_get_equal_answers(http: httpx.Client) -> None:
    sampled = {"sampler": "monte_carlo"}
    first, second = ask(http, **sampled), ask(http, **sampled)
    assert first["mean"] == close(second["mean"])
    assert ask(http, **sampled, seed=first["seed"])["mean"] == close(first["mean"])
    assert ask(http, **sampled, seed=first["seed"] + 1)["mean"] != close(first["mean"])


def test_one_sample_has_no_epistemic_variance_and_no_error_estimate(http: httpx.Client) -> None:
    answer = ask(http, samples=1)
    assert answer["variance"]["epistemic"] == [0.0] * len(ROWS)
    assert answer["mc_error"] is None


@pytest.mark.parametrize(("version", "number"), [(1, 1), ("1", 1), ("champion", 1), (None, 2)])
def test_a_version_has_names(http: httpx.Client, version: int | str | None, number: int) -> None:
    assert ask(http, version=version)["version"] == number


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"inputs": [ROWS[0], ROWS[0] | {"size": "1.5 m"}]}, "/inputs/1/size"),
        ({"inputs": [ROWS[0] | {"size": 1e39}]}, "/inputs/0/size"),
        ({"inputs": [ROWS[0] | {"extra": 1}]}, "/inputs/0/extra"),
        ({"inputs": [[1.0, "oak", True]]}, "/inputs/0"),
        ({"inputs": {"size": [1, 2], "wood": ["a"], "wet": [True], "day": [None]}}, "/inputs/wood"),
        ({"inputs": []}, "/inputs"),
        ({"inputs": 3}, "/inputs"),
        ({"samples": 0}, "/samples"),
        ({"samples": 10_001}, "/samples"),
        ({"prune": 0.3}, "/prune"),
        ({"sampler": "magic"}, "/sampler"),
        ({"model": "No Such\nName"}, "/model"),
        ({"unheard_of": 1}, "/unheard_of"),
        ({"horizon": 3}, "/horizon"),
        ({"future": {"size": [1]}}, "/future"),
        ({"totals": {}}, "/totals"),
        ({"top": 3}, "/top"),
    ],
)
def test_a_wrong_field_is_named(http: httpx.Client, change: dict[str, Any], path: str) -> None:
    answer = answered(http.post("/predict", json={"model": "price", "inputs": ROWS} | change), 422)
    assert path in [error["path"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    "image", [[[0.1, 0.0], [0.2]], [[0.1, None], [0.0, 0.2]], [[True, 0], [0, 0]], [[1]], 1.0]
)
def test_a_tensor_of_another_shape_or_type_is_refused(http: httpx.Client, image: Any) -> None:
    rows = [*TREES, TREES[0] | {"image": image}]
    answer = answered(http.post("/predict", json={"model": "tree", "inputs": rows}), 422)
    assert answer.json()["errors"][0]["path"] == "/inputs/1/image"


@pytest.mark.parametrize(("model", "version"), [("none", None), ("price", 99), ("price", "gold")])
def test_unknown_names_are_a_404(http: httpx.Client, model: str, version: int | str | None) -> None:
    answer = http.post("/predict", json={"model": model, "version": version, "inputs": ROWS})
    assert answer.status_code == 404


def test_extreme_inputs_never_give_nan_or_a_5xx(http: httpx.Client) -> None:
    extremes = [3.4e38, -3.4e38, 1e-320, 0.0]
    answer = http.post(
        "/predict", json={"model": "price", "inputs": [ROWS[0] | {"size": x} for x in extremes]}
    )
    assert answer.status_code == 200
    assert "NaN" not in answer.text
    assert "Infinity" not in answer.text
