"""`explain`: contributions in every format, the limits, and models that cannot."""

import io

import httpx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.app.conftest import MakeService
from tests.app.serving.test_predict import ROWS
from tests.app.test_batch import run, submit
from tests.app.test_bodies import problem

FEATURES = ["size", "wood", "wet", "day"]


def ask(http: httpx.Client, **body: object) -> httpx.Response:
    asked = {"model": "price", "inputs": ROWS, "samples": 20, "explain": True}
    return http.post("/predict", json=asked | body)


def test_contributions_add_up_to_the_answer(http: httpx.Client) -> None:
    answer = ask(http).json()
    found = answer["contributions"]
    assert list(found) == [
        "features",
        "mean",
        "aleatoric",
        "epistemic",
        "standard_error",
        "base",
    ]
    assert found["features"] == FEATURES
    parts = {"mean": answer["mean"]} | {
        name: answer["variance"][name] for name in ("aleatoric", "epistemic")
    }
    for name, values in parts.items():
        total = found["base"][name] + np.sum(found[name], axis=1)
        np.testing.assert_allclose(total, values, rtol=1e-6, atol=1e-6)
        assert np.shape(found["standard_error"][name]) == (len(ROWS), len(FEATURES))
    assert "contributions" not in ask(http, explain=False).json()


def test_arrow_and_the_query_have_the_same_as_columns(http: httpx.Client) -> None:
    document = ask(http).json()["contributions"]
    answer = http.post(
        "/predict",
        json={"model": "price", "inputs": ROWS, "samples": 20, "explain": True},
        headers={"Accept": "application/vnd.apache.arrow.stream"},
    )
    table = pa.ipc.open_stream(answer.content).read_all()
    for part, prefix in (("mean", ""), ("aleatoric", "aleatoric_"), ("epistemic", "epistemic_")):
        for i, feature in enumerate(FEATURES):
            expected = [row[i] for row in document[part]]
            assert table[f"{prefix}contribution_{feature}"].to_pylist() == pytest.approx(expected)
            errors = [row[i] for row in document["standard_error"][part]]
            name = f"standard_error_{prefix}contribution_{feature}"
            assert table[name].to_pylist() == pytest.approx(errors)


def test_the_protocol_has_them_as_tensors(http: httpx.Client) -> None:
    inputs = [
        {"name": "size", "datatype": "FP64", "shape": [2], "data": [1.5, -1.0]},
        {"name": "wood", "datatype": "BYTES", "shape": [2], "data": ["oak", "ash"]},
        {"name": "wet", "datatype": "BOOL", "shape": [2], "data": [True, False]},
        {
            "name": "day",
            "datatype": "BYTES",
            "shape": [2],
            "data": ["2026-01-05T00:00:00Z"] * 2,
        },
    ]
    body = {"inputs": inputs, "outputs": [{"name": "contributions"}]}
    refused = http.post("/v2/models/price/infer", json=body)
    assert refused.status_code == 422
    assert "/parameters/explain" in refused.text
    answer = http.post("/v2/models/price/infer", json=body | {"parameters": {"explain": True}})
    assert answer.status_code == 200, answer.text
    (output,) = answer.json()["outputs"]
    assert output["shape"] == [2, 4]


def test_a_model_that_reads_a_tensor_is_not_explained(http: httpx.Client) -> None:
    rows = [{"x": 0.0, "y": 0.0, "image": [[0, 0], [0, 0]]}]
    answer = ask(http, model="tree", inputs=rows)
    (error,) = problem(answer, 422)["errors"]
    assert error["path"] == "/explain"
    assert error["message"].startswith("this version reads a tensor")


def test_the_work_of_an_explained_row_is_limited(make_service: MakeService) -> None:
    service = make_service(max_work=100_000)
    assert ask(service.http, inputs=ROWS[:1]).status_code == 200
    answer = ask(service.http, inputs=ROWS[:1] * 20)
    assert answer.status_code == 413
    assert "385 values each is more than 100000 (CREDENCE_MAX_WORK)" in answer.json()["detail"]


def test_a_data_set_is_explained_offline(make_service: MakeService) -> None:
    service = make_service()
    answer = submit(service, explain=True, samples=10)
    assert answer.status_code == 202, answer.text
    job = run(service, answer.json())
    assert job["status"] == "succeeded", job
    content = service.http.get(f"/jobs/{job['id']}/result").content
    table = parquet.read_table(io.BytesIO(content))
    assert table.num_rows == 120
    assert "epistemic_contribution_size" in table.column_names
