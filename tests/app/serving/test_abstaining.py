"""Rows unlike training, and rows too uncertain to answer, on every wire."""

import asyncio
import io
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.serving.arrow_format import MEDIA_TYPE
from app.serving.batching import Batch, Entry
from core.jobs.specs import ChunkSpec
from core.predictions.prediction_table import to_table
from models.artifact.files import read_model
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.app.running import Service

DAY = "2026-01-05T00:00:00Z"
ROWS = [[size, "oak", True, DAY] for size in (-1.0, 0.5, 80.0)]
TREES = [[0.0, 0.0, [[0.0, 0.0], [0.0, 0.0]]], [0.5, -0.5, [[0.5, 0.0], [0.0, -0.5]]]]


def ask(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = http.post("/predict", json={"model": "price", "inputs": ROWS} | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def loaded(service: Service, name: str) -> TabularModel:
    model = read_model(service.context.registry.path(service.context.registry.get(name, None)))
    assert isinstance(model, TabularModel)
    return model


def assert_same(answer: Any, expected: Any) -> None:
    """Equal but for the order in which float32 sums were taken: that depends on the batch."""
    if isinstance(expected, dict):
        assert answer.keys() == expected.keys()
        for name, value in expected.items():
            assert_same(answer[name], value)
    elif isinstance(expected, list):
        assert len(answer) == len(expected)
        for one, other in zip(answer, expected, strict=True):
            assert_same(one, other)
    else:
        assert answer == (pytest.approx(expected) if isinstance(expected, float) else expected)


def bound_between(uncertainty: Any) -> float:
    """A bound that some rows exceed and others do not."""
    low, high = np.sort(np.asarray(uncertainty))[[0, -1]]
    assert low < high
    return float((low + high) / 2)


def test_numbers_abstain_above_their_standard_deviation(http: httpx.Client) -> None:
    plain = ask(http)
    assert "abstained" not in plain
    assert plain["out_of_distribution"][-1]
    deviation = np.sqrt(plain["variance"]["total"])
    bound = bound_between(deviation)
    answer = ask(http, abstain_above=bound)
    assert answer["abstained"] == (deviation > bound).tolist()
    for name in ("mean", "variance", "intervals", "ood_score"):
        assert_same(answer[name], plain[name])


def test_classes_abstain_above_their_entropy_and_keep_their_labels(http: httpx.Client) -> None:
    plain = ask(http, model="tree", inputs=TREES)
    bound = bound_between(plain["entropy"]["total"])
    answer = ask(http, model="tree", inputs=TREES, abstain_above=bound)
    assert answer["abstained"] == [entropy > bound for entropy in plain["entropy"]["total"]]
    assert answer["labels"] == plain["labels"]
    assert_same(answer["ood_score"], plain["ood_score"])


def test_the_flags_are_those_of_the_variants_own_threshold(
    service: Service, http: httpx.Client
) -> None:
    variants = http.get("/models/price/versions/2").json()["variants"]
    detectors = {variant["prune"]: variant["out_of_distribution"] for variant in variants}
    assert len(detectors) > 1
    for prune, detector in detectors.items():
        answer = ask(http, prune=prune)
        above = [score > detector["threshold"] for score in answer["ood_score"]]
        assert (np.array(answer["out_of_distribution"]) >= above).all()  # a column flags rows, too
        assert detector["score"] == loaded(service, "price").detector(prune).score
    metrics = variants[0]["metrics"]
    assert metrics["risk_coverage"][-1]["coverage"] == 1.0
    assert metrics["risk_coverage"][-1]["risk"] == pytest.approx(metrics["rmse"])
    assert metrics["aurc"] > 0


@pytest.mark.parametrize("bound", [-0.1, "much", [1.0]])
def test_a_bound_that_is_no_number_from_0_on_is_refused(http: httpx.Client, bound: Any) -> None:
    body = {"model": "price", "inputs": ROWS, "abstain_above": bound}
    answer = http.post("/predict", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "/abstain_above"


def test_arrow_has_both_columns(http: httpx.Client) -> None:
    plain = ask(http)
    bound = bound_between(np.sqrt(plain["variance"]["total"]))
    body = {"model": "price", "inputs": ROWS, "abstain_above": bound}
    answer = http.post("/predict", json=body, headers={"Accept": MEDIA_TYPE})
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert_same(table["ood_score"].to_pylist(), plain["ood_score"])
    assert table["abstained"].to_pylist() == ask(http, abstain_above=bound)["abstained"]


def infer(http: httpx.Client, outputs: list[str] | None, **parameters: Any) -> httpx.Response:
    columns = zip(("size", "wood", "wet", "day"), ("FP64", "BYTES", "BOOL", "BYTES"), strict=True)
    inputs = [
        {"name": name, "shape": [3], "datatype": datatype, "data": [row[i] for row in ROWS]}
        for i, (name, datatype) in enumerate(columns)
    ]
    body = {"inputs": inputs, "parameters": parameters}
    if outputs is not None:
        body["outputs"] = [{"name": name} for name in outputs]
    return http.post("/v2/models/price/infer", json=body)


def test_the_protocol_has_both_outputs_on_request(http: httpx.Client) -> None:
    bound = bound_between(np.sqrt(ask(http)["variance"]["total"]))
    expected = ask(http, abstain_above=bound)
    named = infer(http, ["ood_score", "abstained"], abstain_above=bound).json()["outputs"]
    data = {output["name"]: output["data"] for output in named}
    assert data["abstained"] == expected["abstained"]
    assert data["ood_score"] == pytest.approx(expected["ood_score"])
    unnamed = infer(http, None, abstain_above=bound).json()["outputs"]
    assert unnamed[-1]["name"] == "abstained"
    assert "abstained" not in [output["name"] for output in infer(http, None).json()["outputs"]]


@pytest.mark.parametrize(
    ("outputs", "parameters"), [(["mean"], {"abstain_above": 1}), (["abstained"], {})]
)
def test_the_protocol_refuses_one_without_the_other(
    http: httpx.Client, outputs: list[str], parameters: dict[str, Any]
) -> None:
    answer = infer(http, outputs, **parameters)
    assert answer.status_code == 422
    assert "/parameters/abstain_above" in answer.text


def test_requests_that_differ_in_their_bound_share_a_batch(service: Service) -> None:
    """Each gets the marks of its own bound, or none."""
    model = loaded(service, "price")
    x = model.encoder.encode(
        {
            "size": np.array([-1.0, 80.0]),
            "wood": np.array(["oak", "ash"], object),
            "wet": np.array([1.0, 0.0]),
            "day": np.array([DAY[:-1]] * 2, "datetime64[us]"),
        }
    )
    options = model.resolve(PredictOptions(samples=10))
    deviation = model.predict_rows(x, options).uncertainty
    bounds = (None, 0.0, bound_between(deviation), 1e9)

    async def compute() -> list[Any]:
        entries = [Entry("a", model, x, replace(options, abstain_above=bound)) for bound in bounds]
        assert len({entry.batch_key(10) for entry in entries}) == 1
        return list(Batch(entries, 10).compute())

    answers = asyncio.run(compute())
    marks = [None if a.abstained is None else a.abstained.tolist() for a in answers]
    assert marks == [None, [True, True], (deviation > bounds[2]).tolist(), [False, False]]


def test_an_offline_chunk_takes_the_bound_along(service: Service) -> None:
    model = loaded(service, "price")
    version = service.context.registry.get("price", None)
    body = {"model": "price", "dataset": version.dataset, "abstain_above": 0.25, "samples": 10}
    job = service.post("/predict/batch", body).json()
    assert job["request"]["abstain_above"] == 0.25
    spec = ChunkSpec(
        model="price", dataset=version.dataset, version=2, samples=10, seed=1, sampler="sobol",
        abstain_above=0.25, chunk_rows=50, job=job["id"], chunk=0, start=0, stop=50,
    )  # fmt: skip
    columns = service.context.datasets.columns(version.dataset, [c.name for c in model.inputs])
    prediction = model.predict(columns, spec)
    marks = to_table(prediction).column("abstained").to_pylist()
    assert marks == (np.sqrt(prediction.variance["total"]) > 0.25).tolist()


@pytest.mark.parametrize("rate", [0, 0.6, "often"])
def test_a_false_alarm_rate_out_of_range_is_refused(service: Service, rate: Any) -> None:
    dataset = service.context.registry.get("price", None).dataset
    body = {"model": "price", "dataset": dataset, "target": "price"}
    answer = service.post("/train", body | {"out_of_distribution": {"false_alarm_rate": rate}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "/out_of_distribution/false_alarm_rate"
