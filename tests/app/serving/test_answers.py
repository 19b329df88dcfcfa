"""What is asked for beside the usual answer, on every wire: probabilities, quantiles, densities,
decisions, reasons, contributions, and rows too uncertain to answer."""

import csv
import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.serving.arrow_format import MEDIA_TYPE
from models.prediction.options import Density
from tests.app.conftest import MakeService
from tests.app.running import CLASSES, Service, answered
from tests.app.serving.test_predict import FEATURES, ask, directly
from tests.app.serving.test_predict import ROWS as RECORDS
from tests.app.serving.wires import close, outputs_of, send_arrow, table_of, tensors

DAY = "2026-01-05T00:00:00Z"
ROWS = [[size, "oak", True, DAY] for size in (-1.0, 0.5, 80.0)]
COLUMNS = {name: [row[i] for row in ROWS] for i, name in enumerate(FEATURES)}
TREES = [[0.0, 0.0, [[0.0, 0.0], [0.0, 0.0]]], [0.5, -0.5, [[0.5, 0.0], [0.0, -0.5]]]]
STOCK = {"over": 1.0, "under": 4.0, "abstain": 0.5}
MATRIX = {"matrix": [[0, 2, 9], [3, 0, 1], [8, 1, 0]]}
PROBABILITIES: dict[str, Any] = {
    "exceeds": [20.0, 3, 20.0],
    "quantiles": [0.9, 0.25],
    "density": {"points": 16},
}
IN_QUERY = {"exceeds": "20,3,20", "quantiles": "0.9,0.25", "density": '{"points": 16}'}


def infer(
    http: httpx.Client, outputs: list[str] | None = None, model: str = "price", **parameters: Any
) -> httpx.Response:
    if model == "price":
        inputs = tensors(COLUMNS)
    else:
        image = np.ravel([row[2] for row in TREES]).tolist()
        inputs = tensors({"x": [row[0] for row in TREES], "y": [row[1] for row in TREES]})
        inputs += [{"name": "image", "shape": [2, 2, 2], "datatype": "FP64", "data": image}]
    body: dict[str, Any] = {"inputs": inputs, "parameters": parameters}
    if outputs is not None:
        body["outputs"] = [{"name": name} for name in outputs]
    return http.post(f"/v2/models/{model}/infer", json=body)


def asked_table(http: httpx.Client, **body: Any) -> pa.Table:
    """The answer in Arrow to a question in JSON."""
    body = {"model": "price", "inputs": ROWS} | body
    return table_of(http.post("/predict", json=body, headers={"Accept": MEDIA_TYPE}))


def path_of_refusal(http: httpx.Client, **body: Any) -> str:
    answer = answered(http.post("/predict", json={"model": "price", "inputs": ROWS} | body), 422)
    return str(answer.json()["errors"][0]["path"])


# ---- probabilities, quantiles and densities


def test_json_has_the_models_numbers_in_order(service: Service, http: httpx.Client) -> None:
    answer = ask(http, **PROBABILITIES, return_mc_errors=True)
    asked = {"exceeds": (20.0, 3.0, 20.0), "quantiles": (0.9, 0.25), "density": Density(16)}
    expected = directly(service, "price", RECORDS, **asked)
    assert [one["threshold"] for one in answer["exceeds"]] == [20.0, 3.0, 20.0]
    assert [one["p"] for one in answer["quantiles"]] == [0.9, 0.25]
    for i, one in enumerate(answer["exceeds"]):
        assert one["probability"] == close(expected["exceeds"][:, i].tolist())
    for i, one in enumerate(answer["quantiles"]):
        assert one["values"] == close(expected["quantile"][:, i].tolist())
    assert answer["density"]["values"] == close(expected["density_values"].tolist())
    assert answer["density"]["density"] == close(expected["density"].tolist())
    errors = answer["mc_errors"]
    assert np.shape(errors["density"]) == (len(RECORDS), 16)
    for name in ("exceeds_20.0", "exceeds_3.0", "quantile_0.9", "quantile_0.25"):
        assert min(errors[name]) > 0


def test_probabilities_are_columns_and_tensors(http: httpx.Client) -> None:
    expected = ask(http, inputs=ROWS, **PROBABILITIES)
    query = IN_QUERY | {"exceeds": "20,3", "return_mc_errors": "true"}
    found = table_of(send_arrow(http, COLUMNS, model="price", **query))
    assert found["exceeds_20.0"].to_pylist() == close(expected["exceeds"][0]["probability"])
    assert found["quantile_0.25"].to_pylist() == close(expected["quantiles"][1]["values"])
    assert found["density_values"].to_pylist() == close(expected["density"]["values"])
    assert {"exceeds_3.0_mc_error", "density_mc_error"} < set(found.column_names)
    outputs = outputs_of(infer(http, **IN_QUERY))
    given = np.array(outputs["exceeds"]["data"]).reshape(3, 3)
    assert given.T.tolist() == close([one["probability"] for one in expected["exceeds"]])
    assert outputs["quantile_values"]["shape"] == [3, 2]
    assert outputs["density_values"]["shape"] == outputs["density"]["shape"] == [3, 16]


@pytest.mark.parametrize(
    ("option", "value", "path"),
    [
        ("exceeds", [1.0, "many"], "/exceeds/1"),
        ("exceeds", list(range(17)), "/exceeds"),
        ("quantiles", [0.5] * 100, "/quantiles"),
        ("costs", MATRIX, "/costs/matrix"),
        ("costs", {"over": 0, "under": 0}, "/costs"),
    ],
)
def test_what_is_wrong_is_named(http: httpx.Client, option: str, value: Any, path: str) -> None:
    assert path_of_refusal(http, **{option: value}) == path


@pytest.mark.parametrize(
    ("option", "value", "path"),
    [
        *((name, value, f"/{name}") for name, value in PROBABILITIES.items()),
        ("explain", True, "/explain"),  # it reads a tensor
        ("interval_kinds", ["adaptive"], "/interval_kinds"),
        ("costs", STOCK, "/costs"),
        ("costs", {"matrix": [[0, 1], [1, 0]]}, "/costs/matrix"),
        ("costs", {"matrix": [[0, 1, 2], [1]]}, "/costs"),
        ("costs", MATRIX | {"actions": ["a", "b"]}, "/costs"),
        ("costs", MATRIX | {"abstain": -1}, "/costs/abstain"),
    ],
)
def test_what_a_classifier_cannot_answer_is_named(
    http: httpx.Client, option: str, value: Any, path: str
) -> None:
    assert path_of_refusal(http, model="tree", inputs=TREES, **{option: value}) == path


def test_many_quantiles_and_explanations_count_as_work(make_service: MakeService) -> None:
    service = make_service(max_work=100_000)
    body = {"model": "price", "inputs": ROWS[:1] * 20, "samples": 20}
    assert service.post("/predict", body).status_code == 200
    assert service.post("/predict", body | {"explain": True}).status_code == 413
    many = {"quantiles": np.linspace(0.01, 0.99, 99).tolist(), "samples": 2000}
    assert service.post("/predict", body | many).status_code == 413


# ---- rows unlike training, or too uncertain


def bound_between(uncertainty: Any) -> float:
    """A bound that some rows exceed and others do not."""
    low, high = np.sort(np.asarray(uncertainty))[[0, -1]]
    assert low < high
    return float((low + high) / 2)


def test_numbers_abstain_above_their_standard_deviation(http: httpx.Client) -> None:
    plain = ask(http, inputs=ROWS)
    assert "abstained" not in plain
    assert plain["out_of_distribution"][-1]
    deviation = np.sqrt(plain["variance"]["total"])
    bound = bound_between(deviation)
    answer = ask(http, inputs=ROWS, abstain_above=bound)
    assert answer["abstained"] == (deviation > bound).tolist()
    for name in ("mean", "variance", "intervals", "ood_score"):
        assert answer[name] == close(plain[name])
    table = asked_table(http, abstain_above=bound)
    assert table["ood_score"].to_pylist() == close(plain["ood_score"])
    assert table["abstained"].to_pylist() == answer["abstained"]
    named = outputs_of(infer(http, ["ood_score", "abstained"], abstain_above=bound))
    assert named["abstained"]["data"] == answer["abstained"]
    assert named["ood_score"]["data"] == close(plain["ood_score"])
    assert "abstained" not in outputs_of(infer(http))


# ---- reasons

STRANGE = [
    [0.1, "oak", True, DAY],
    [80.0, "oak", True, DAY],
    [0.1, "teak", True, DAY],
    [0.1, "ash", True, None],
]


def test_json_names_the_column_first(http: httpx.Client) -> None:
    answer = ask(http, inputs=STRANGE)
    assert answer["out_of_distribution"][1:] == [True, True, True]
    first = [found[0] for found in answer["reasons"][1:]]
    assert [(one["column"], one["code"], one["value"]) for one in first] == [
        ("size", "out_of_range", 80),
        ("wood", "unseen_level", "teak"),
        ("day", "missing_unseen", None),
    ]
    size, wood, day = (one["seen"] for one in first)
    assert -2 <= size["lowest"] < size["highest"] <= 2
    assert (sorted(wood["levels"]), wood["count"]) == (["ash", "oak"], 2)
    assert day == {"lowest": "2026-01-01", "highest": "2026-01-28"}
    for flagged, found in zip(answer["out_of_distribution"], answer["reasons"], strict=True):
        assert flagged == bool(found)
    alone = [ask(http, inputs=[row])["reasons"][0] for row in STRANGE]
    assert alone == close(answer["reasons"])


def test_reasons_are_structs_words_and_json(http: httpx.Client) -> None:
    texts = [[one["text"] for one in row] for row in ask(http, inputs=STRANGE)["reasons"]]
    found = asked_table(http, inputs=STRANGE)["reasons"].to_pylist()
    assert [[one["text"] for one in row] for row in found] == texts
    body = {"model": "price", "inputs": STRANGE}
    answer = http.post("/predict", json=body, headers={"Accept": "text/csv"})
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [line["reasons"] for line in lines] == ["; ".join(row) for row in texts]
    outputs = outputs_of(infer(http, ["reasons", "out_of_distribution"]))
    reasons = [json.loads(text) for text in outputs["reasons"]["data"]]
    assert reasons[2][0]["column"] == "size"  # 80
    assert [bool(row) for row in reasons] == outputs["out_of_distribution"]["data"]
    assert "reasons" not in outputs_of(infer(http))


# ---- contributions


def test_contributions_add_up_to_the_answer(http: httpx.Client) -> None:
    answer = ask(http, samples=20, explain=True)
    found = answer["contributions"]
    assert found["features"] == FEATURES
    parts = {"mean": answer["mean"]} | {
        name: answer["variance"][name] for name in ("aleatoric", "epistemic")
    }
    for name, values in parts.items():
        total = found["base"][name] + np.sum(found[name], axis=1)
        np.testing.assert_allclose(total, values, rtol=1e-4, atol=1e-5)
        assert np.shape(found["standard_error"][name]) == (len(RECORDS), len(FEATURES))
    table = asked_table(http, inputs=RECORDS, samples=20, explain=True)
    for part, prefix in (("mean", ""), ("aleatoric", "aleatoric_"), ("epistemic", "epistemic_")):
        for i, feature in enumerate(FEATURES):
            name = f"{prefix}contribution_{feature}"
            assert table[name].to_pylist() == close([row[i] for row in found[part]])
            errors = [row[i] for row in found["standard_error"][part]]
            assert table[f"standard_error_{name}"].to_pylist() == close(errors)
    outputs = outputs_of(infer(http, ["contributions"], explain=True))
    assert outputs["contributions"]["shape"] == [3, 4]


# ---- decisions


def decide(service: Service, model: str, inputs: Any, costs: Any, **options: Any) -> Any:
    body = {"model": model, "inputs": inputs, "costs": costs, "samples": 50}
    return ask(service.http, **body | options)


def test_numbers_get_the_quantile_of_the_costs(cards: Service) -> None:
    answer = decide(cards, "price", ROWS, STOCK, intervals=[0.6], return_mc_errors=True)
    found, upper = answer["decisions"], answer["intervals"][0]["upper"]
    assert found["action"] == close(upper)  # 0.8 = 4/(1 + 4) is the upper end of 60 %
    assert found["abstain"] == [cost > 0.5 for cost in found["expected_cost"]]
    assert found["value_of_information"] == found["expected_cost"]
    for name in ("action", "expected_cost", "value_of_model_information"):
        assert min(answer["mc_errors"][name]) >= 0
    query = {"model": "price", "samples": 50, "costs": json.dumps(STOCK)}
    days = np.array([DAY[:-1]] * 3, "datetime64[us]")
    table = table_of(send_arrow(cards.http, COLUMNS | {"day": days}, **query))
    assert table["action"].to_pylist() == close(found["action"])
    answered(send_arrow(cards.http, COLUMNS, **query | {"costs": "{over: 1}"}), 422)


def test_classes_get_the_cheapest_action_by_their_probabilities(cards: Service) -> None:
    answer = decide(cards, "tree", TREES, MATRIX)
    found = answer["decisions"]
    costs = np.array(answer["probabilities"]) @ np.array(MATRIX["matrix"]).T
    assert found["action"] == [CLASSES[i] for i in costs.argmin(1)]
    assert found["expected_cost"] == close(costs.min(1).tolist())
    assert found["value_of_information"] == close(costs.min(1).tolist())
    assert "abstain" not in found
