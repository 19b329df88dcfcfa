"""P(y > t), quantiles and densities on every wire."""

import csv
import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.serving.arrow_format import MEDIA_TYPE
from models.prediction.answers.density import PredictedDensity
from models.prediction.answers.exceeds import Exceedance
from models.prediction.answers.quantiles import Quantiles
from models.prediction.options import Density
from tests.app.running import Service
from tests.app.serving.test_abstaining import ROWS as LISTS
from tests.app.serving.test_abstaining import infer
from tests.app.serving.test_predict import ROWS, TREES, ask, directly

ASKED: dict[str, Any] = {
    "exceeds": [20.0, 3, 20.0],
    "quantiles": [0.9, 0.25],
    "density": {"points": 16},
}


def test_json_has_the_models_own_numbers_in_the_order_of_the_request(
    service: Service, http: httpx.Client
) -> None:
    answer = ask(http, **ASKED, return_mc_errors=True)
    expected = directly(
        service,
        "price",
        ROWS,
        exceeds=(20.0, 3.0, 20.0),
        quantiles=(0.9, 0.25),
        density=Density(16),
    ).answers
    above, below, density = expected["exceeds"], expected["quantiles"], expected["density"]
    assert isinstance(above, Exceedance)
    assert isinstance(below, Quantiles)
    assert isinstance(density, PredictedDensity)
    assert [one["threshold"] for one in answer["exceeds"]] == [20.0, 3.0, 20.0]
    assert [one["p"] for one in answer["quantiles"]] == [0.9, 0.25]
    for i, one in enumerate(answer["exceeds"]):
        assert one["probability"] == above.probabilities[:, i].tolist()
    for i, one in enumerate(answer["quantiles"]):
        assert one["values"] == below.values[:, i].tolist()
    assert answer["density"]["kind"] == "density"
    assert answer["density"]["values"] == density.values.tolist()
    assert answer["density"]["density"] == density.density.tolist()
    assert answer["density"]["atoms"] == []
    errors = answer["mc_errors"]
    assert np.shape(errors["density"]) == (len(ROWS), 16)
    for name in ("exceeds_20.0", "exceeds_3.0", "quantile_0.9", "quantile_0.25"):
        assert len(errors[name]) == len(ROWS)
        assert min(errors[name]) > 0


def test_nothing_that_was_not_asked_for_comes(http: httpx.Client) -> None:
    answer = ask(http, exceeds=[], quantiles=[])
    assert not {"exceeds", "quantiles", "density"} & set(answer)


def test_the_sampler_without_samples_answers_too(http: httpx.Client) -> None:
    answer = ask(http, **ASKED, sampler="moments", return_mc_errors=True)
    assert answer["samples"] == 0
    assert "mc_errors" not in answer
    sampled = ask(http, **ASKED, samples=4000)
    for one, other in zip(answer["exceeds"], sampled["exceeds"], strict=True):
        np.testing.assert_allclose(one["probability"], other["probability"], atol=0.05)


def test_arrow_has_columns_and_the_query_has_the_options(http: httpx.Client) -> None:
    sink = io.BytesIO()
    columns = {name: [row[name] for row in ROWS] for name in ("size", "wood", "wet", "day")}
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    params = {
        "model": "price",
        "exceeds": "20,3",
        "quantiles": "0.9,0.25",
        "density": json.dumps({"points": 16}),
        "return_mc_errors": "true",
    }
    headers = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE}
    answer = http.post("/predict", params=params, content=sink.getvalue(), headers=headers)
    assert answer.status_code == 200, answer.text
    found = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    expected = ask(http, **ASKED)
    assert found["exceeds_20.0"].to_pylist() == pytest.approx(expected["exceeds"][0]["probability"])
    assert found["quantile_0.25"].to_pylist() == pytest.approx(expected["quantiles"][1]["values"])
    assert found["density_kind"].to_pylist() == ["density"] * 3
    assert found["density"].type == pa.list_(pa.float64(), 16)
    values = np.array(found["density_values"].to_pylist())
    np.testing.assert_allclose(values, expected["density"]["values"], rtol=1e-6)
    assert {"exceeds_3.0_mc_error", "quantile_0.9_mc_error"} < set(found.column_names)
    assert found["density_mc_error"].type == pa.list_(pa.float64(), 16)


def test_csv_has_lists_as_json(http: httpx.Client) -> None:
    body = {"model": "price", "inputs": ROWS} | ASKED
    answer = http.post("/predict", json=body, headers={"Accept": "text/csv"})
    assert answer.status_code == 200, answer.text
    expected = ask(http, **ASKED)
    for i, row in enumerate(csv.DictReader(io.StringIO(answer.text))):
        assert json.loads(row["density_values"]) == expected["density"]["values"][i]
        assert float(row["exceeds_3.0"]) == expected["exceeds"][1]["probability"][i]


def test_the_protocol_has_tensors(http: httpx.Client) -> None:
    expected = http.post("/predict", json={"model": "price", "inputs": LISTS} | ASKED).json()
    parameters = {"exceeds": "20,3,20", "quantiles": "0.9,0.25", "density": '{"points": 16}'}
    outputs = infer(http, None, **parameters).json()["outputs"]
    shapes = {output["name"]: output["shape"] for output in outputs}
    assert shapes["exceeds"] == [3, 3]
    assert shapes["quantile_values"] == [3, 2]
    assert shapes["density_values"] == shapes["density"] == [3, 16]
    (named,) = infer(http, ["exceeds"], exceeds="20,3,20").json()["outputs"]
    given = np.array(named["data"]).reshape(3, 3)
    np.testing.assert_allclose(given.T, [one["probability"] for one in expected["exceeds"]])


@pytest.mark.parametrize(
    ("outputs", "parameters", "path"),
    [
        (["exceeds"], {}, "/parameters/exceeds"),
        (["mean"], {"exceeds": "1"}, "/parameters/exceeds"),
        (["mean"], {"quantiles": "0.5"}, "/parameters/quantiles"),
        (None, {"density": "64"}, "/parameters/density"),
        (None, {"exceeds": "high"}, "/parameters/exceeds/0"),
    ],
)
def test_the_protocol_refuses_options_without_outputs_and_the_reverse(
    http: httpx.Client, outputs: list[str] | None, parameters: dict[str, str], path: str
) -> None:
    answer = infer(http, outputs, **parameters)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"].startswith(path)


@pytest.mark.parametrize(
    ("option", "value", "path"),
    [
        ("exceeds", [1.0, "many"], "/exceeds/1"),
        ("exceeds", list(range(17)), "/exceeds"),
        ("exceeds", 3.0, "/exceeds"),
        ("quantiles", [0.5, 1.0], "/quantiles/1"),
        ("quantiles", [0.0], "/quantiles/0"),
        ("quantiles", [0.5] * 100, "/quantiles"),
        ("density", {"points": 1}, "/density/points"),
        ("density", {"points": 513}, "/density/points"),
        ("density", {"bins": 64}, "/density/bins"),
        ("density", 64, "/density"),
    ],
)
def test_what_is_wrong_is_named(http: httpx.Client, option: str, value: Any, path: str) -> None:
    answer = http.post("/predict", json={"model": "price", "inputs": ROWS, option: value})
    assert answer.status_code == 422, answer.text
    assert path in [error["path"] for error in answer.json()["errors"]]


@pytest.mark.parametrize("text", ["1e999", "-1e999"])
def test_thresholds_that_are_not_finite_are_refused(http: httpx.Client, text: str) -> None:
    body = json.dumps({"model": "price", "inputs": ROWS, "exceeds": [1.0, 0.0]})
    answer = http.post("/predict", content=body.replace("0.0]", f"{text}]"))
    assert answer.status_code == 422, answer.text
    query = http.post("/predict", params={"model": "price", "exceeds": f"1,{text}"}, content=b"{}")
    assert query.status_code in {415, 422}


@pytest.mark.parametrize("option", ["exceeds", "quantiles", "density"])
def test_a_classifier_says_what_to_ask_instead(http: httpx.Client, option: str) -> None:
    answer = http.post("/predict", json={"model": "tree", "inputs": TREES, option: ASKED[option]})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == f"/{option}"
    assert "`probabilities`" in error["message"]


def test_many_quantiles_count_as_work(http: httpx.Client) -> None:
    """1 row × 10,000 samples is a thousandth of the limit, with 99 quantiles 17 times as much."""
    body = {"model": "price", "inputs": ROWS[:1] * 100, "samples": 10_000}
    assert http.post("/predict", json=body | {"samples": 10}).status_code == 200
    refused = http.post("/predict", json=body | {"quantiles": np.linspace(0.01, 0.99, 99).tolist()})
    assert refused.status_code == 413, refused.text
    assert "values each" in refused.json()["detail"]
