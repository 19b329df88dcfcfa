"""Decisions on every wire: JSON, Arrow, query, the Open Inference Protocol, offline chunks."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.serving.arrow_format import MEDIA_TYPE
from core.jobs.specs import ChunkSpec
from core.predictions.prediction_table import to_table
from models.artifact.files import read_model
from models.prediction.options import Costs
from models.tabular.model import TabularModel
from tests.app.running import CLASSES, Service

DAY = "2026-01-05T00:00:00Z"
ROWS = [[size, "oak", True, DAY] for size in (-1.0, 0.5, 80.0)]
TREES = [[0.0, 0.0, [[0.0, 0.0], [0.0, 0.0]]], [0.5, -0.5, [[0.5, 0.0], [0.0, -0.5]]]]
QUARTERS = [f"{2005 + i // 4}-{3 * (i % 4) + 1:02d}" for i in range(24)]
SALES = {"quarter": QUARTERS, "sales": (50 + 5 * np.cos(np.arange(24) * np.pi / 2)).tolist()}
STOCK = {"over": 1.0, "under": 4.0, "abstain": 0.5}
MATRIX = {"matrix": [[0, 2, 9], [3, 0, 1], [8, 1, 0]]}


def post(service: Service, model: str, inputs: Any, costs: Any, **options: Any) -> httpx.Response:
    body = {"model": model, "inputs": inputs, "costs": costs, "samples": 50}
    return service.post("/predict", body | options)


def decide(service: Service, model: str, inputs: Any, costs: Any, **options: Any) -> Any:
    answer = post(service, model, inputs, costs, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_numbers_get_the_quantile_of_the_costs(cards: Service) -> None:
    answer = decide(cards, "price", ROWS, STOCK, intervals=[0.6], return_mc_errors=True)
    found, upper = answer["decisions"], answer["intervals"][0]["upper"]
    assert found["action"] == pytest.approx(upper)  # 0.8 = 4/(1 + 4) is the upper end of 60 %
    assert found["abstain"] == [cost > 0.5 for cost in found["expected_cost"]]
    assert found["value_of_information"] == found["expected_cost"]
    for name in ("action", "expected_cost", "value_of_model_information"):
        assert min(answer["mc_errors"][name]) >= 0
    plain = cards.post("/predict", {"model": "price", "inputs": ROWS, "samples": 50}).json()
    assert "decisions" not in plain
    assert answer["mean"] == pytest.approx(plain["mean"])


def test_classes_get_the_cheapest_action_by_their_probabilities(cards: Service) -> None:
    answer = decide(cards, "tree", TREES, MATRIX)
    found, costs = (
        answer["decisions"],
        np.array(answer["probabilities"]) @ np.array(MATRIX["matrix"]).T,
    )
    assert found["action"] == [CLASSES[i] for i in costs.argmin(1)]
    assert found["expected_cost"] == pytest.approx(costs.min(1).tolist())
    assert found["value_of_information"] == pytest.approx(costs.min(1).tolist())
    assert "abstain" not in found
    plain = cards.post("/predict", {"model": "tree", "inputs": TREES, "samples": 50}).json()
    assert answer["labels"] == plain["labels"]


def test_forecasts_decide_at_every_step(cards: Service) -> None:
    answer = decide(cards, "sales", SALES, STOCK, intervals=[0.6], return_draws=True)
    found = answer["decisions"]
    assert found["action"] == pytest.approx(answer["intervals"][0]["upper"])
    assert set(found) == {"action", "expected_cost", "abstain", "value_of_information"}
    draws, action = np.array(answer["draws"]), np.array(found["action"])
    costs = np.maximum(draws - action, 0) * 4 + np.maximum(action - draws, 0)
    error = costs.std(0) / np.sqrt(len(costs))
    # Paths are drawn from the components whose cost is exact.
    assert (np.abs(costs.mean(0) - found["expected_cost"]) < 5 * error).all()


def test_texts_are_not_decided(cards: Service) -> None:
    answer = post(cards, "lines", ["a b"], MATRIX)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == ["/costs"]


@pytest.mark.parametrize(
    ("model", "costs", "path", "text"),
    [
        ("price", MATRIX, "/costs/matrix", "over and under"),
        ("price", {"over": 1, "under": 1, "ask": 2}, "/costs/ask", ""),
        ("price", {"over": -1, "under": 1}, "/costs/over", ""),
        ("price", {"over": 0, "under": 0}, "/costs", "both 0"),
        ("price", {"over": "much", "under": 1}, "/costs/over", ""),
        ("price", [1, 2], "/costs", ""),
        ("tree", STOCK, "/costs", "alder, beech, oak"),
        ("tree", {"matrix": [[0, 1], [1, 0]]}, "/costs/matrix", "alder, beech, oak"),
        ("tree", {"matrix": [[0, 1, 2], [1]]}, "/costs", "rows of the matrix"),
        ("tree", {"matrix": []}, "/costs/matrix", ""),
        ("tree", MATRIX | {"actions": ["a", "b"]}, "/costs", "2 actions for 3 rows"),
        ("tree", MATRIX | {"abstain": -1}, "/costs/abstain", ""),
    ],
)
def test_wrong_costs_are_refused(
    cards: Service, model: str, costs: Any, path: str, text: str
) -> None:
    answer = post(cards, model, TREES if model == "tree" else ROWS, costs)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == path
    assert text in error["message"]


def table_of(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(io.BytesIO(content)).read_all()


def test_tables_have_a_column_for_each_part(cards: Service) -> None:
    body = {"model": "tree", "inputs": TREES, "samples": 50, "costs": MATRIX | {"abstain": 0.1}}
    answer = cards.post("/predict", body, headers={"Accept": MEDIA_TYPE})
    table, found = table_of(answer.content), decide(cards, "tree", TREES, body["costs"])
    assert table["action"].type == pa.string()
    assert table["action"].to_pylist() == found["decisions"]["action"]
    assert table["ask"].to_pylist() == found["decisions"]["abstain"]
    for name in ("expected_cost", "value_of_information", "value_of_model_information"):
        assert table[name].to_pylist() == pytest.approx(found["decisions"][name])


def test_costs_in_a_query_are_json(cards: Service) -> None:
    names = ("size", "wood", "wet", "day")
    columns = {name: [row[i] for row in ROWS] for i, name in enumerate(names)}
    rows = pa.table(columns | {"day": np.array([DAY[:-1]] * 3, "datetime64[us]")})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    query = {"model": "price", "samples": 50, "costs": json.dumps(STOCK)}
    headers = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE}
    answer = cards.http.post("/predict", params=query, content=sink.getvalue(), headers=headers)
    table = table_of(answer.content)
    found = decide(cards, "price", ROWS, STOCK)["decisions"]
    assert table["action"].to_pylist() == pytest.approx(found["action"])
    query["costs"] = "{over: 1}"
    answer = cards.http.post("/predict", params=query, content=sink.getvalue(), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "/costs"


def infer(service: Service, outputs: list[str] | None, **parameters: Any) -> httpx.Response:
    image = [row[2] for row in TREES]
    inputs = [
        {"name": "x", "shape": [2], "datatype": "FP64", "data": [row[0] for row in TREES]},
        {"name": "y", "shape": [2], "datatype": "FP64", "data": [row[1] for row in TREES]},
        {"name": "image", "shape": [2, 2, 2], "datatype": "FP64", "data": np.ravel(image).tolist()},
    ]
    body: dict[str, Any] = {"inputs": inputs, "parameters": parameters | {"samples": 50}}
    if outputs is not None:
        body["outputs"] = [{"name": name} for name in outputs]
    return service.post("/v2/models/tree/infer", body)


def test_the_protocol_has_tensors_of_decisions(cards: Service) -> None:
    costs = MATRIX | {"abstain": 0.1}
    found = decide(cards, "tree", TREES, costs)["decisions"]
    given = json.dumps(costs)
    answer = infer(cards, None, costs=given)
    assert answer.status_code == 200, answer.text
    tensors = {output["name"]: output for output in answer.json()["outputs"]}
    assert tensors["action"]["data"] == found["action"]
    assert tensors["action"]["datatype"] == "BYTES"
    assert tensors["ask"]["data"] == found["abstain"]
    assert tensors["expected_cost"]["data"] == pytest.approx(found["expected_cost"])
    one = infer(cards, ["action"], costs=given).json()["outputs"]
    assert [output["name"] for output in one] == ["action"]
    assert "/parameters/costs" in infer(cards, ["action"]).text
    assert "/parameters/costs" in infer(cards, ["ask"], costs=json.dumps(MATRIX)).text


def test_an_offline_chunk_takes_the_costs_along(cards: Service) -> None:
    version = cards.context.registry.get("tree", None)
    body = {"model": "tree", "dataset": version.dataset, "costs": MATRIX, "samples": 10}
    job = cards.post("/predict/batch", body).json()
    assert job["request"]["costs"]["matrix"] == MATRIX["matrix"]
    spec = ChunkSpec.model_validate(
        {
            "model": "tree", "dataset": version.dataset, "version": 1, "samples": 10, "seed": 1,
            "sampler": "sobol", "costs": job["request"]["costs"], "chunk_rows": 50,
            "job": job["id"], "chunk": 0, "start": 0, "stop": 50,
        }
    )  # fmt: skip
    assert isinstance(spec.costs, Costs)
    model = read_model(cards.context.registry.path(version))
    assert isinstance(model, TabularModel)
    columns = cards.context.datasets.columns(version.dataset, [c.name for c in model.inputs])
    table = to_table(model.predict(columns, spec))
    assert table["action"].type == pa.string()
    assert set(table["action"].to_pylist()) <= set(CLASSES)


def test_a_data_set_is_refused_with_the_costs_of_another_model(cards: Service) -> None:
    version = cards.context.registry.get("tree", None)
    body = {"model": "tree", "dataset": version.dataset, "costs": STOCK}
    answer = cards.post("/predict/batch", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "/costs"
