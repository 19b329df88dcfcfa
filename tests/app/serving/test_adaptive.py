"""Adaptive intervals over HTTP: conformal ones at the level that labels say."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from app.serving import adaptation
from core.exceptions import Unavailable
from models.artifact.files import read_model
from models.evaluation.adaptive import Adapted, Labels, adapt
from models.prediction.options import PredictOptions
from tests.app.conftest import MakeService
from tests.app.running import Service
from tests.app.serving.wires import (
    close,
    done,
    outputs_of,
    result_of,
    send_arrow,
    table_of,
    tensors,
)
from tests.app.test_feedback import PRICE, TREES, stored, tell

ADAPTIVE = {"interval_kinds": ["adaptive"], "intervals": [0.5, 0.9]}
OFF = 0.8  # how far the labels are from the means


@pytest.fixture
def own(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Its predictions read the labels each time."""
    monkeypatch.setattr(adaptation, "FRESH_SECONDS", 0.0)
    return make_service()


@pytest.fixture
def labelled(own: Service) -> Service:
    """Two stored predictions of thirty rows were nearly right."""
    for _ in range(2):
        answer = stored(own, inputs=PRICE * 10)
        tell(own, prediction=answer["id"], truth=[mean + OFF for mean in answer["mean"]])
    return own


def ask(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.post("/predict", {"model": "price", "inputs": PRICE} | body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def expected(service: Service) -> list[Adapted]:
    """What the mathematics say of the labels of the newest version."""
    version = service.context.registry.get("price")
    model = read_model(service.context.registry.path(version))
    reference = model.variant(0.0).reference
    labels = service.context.feedback.labels("price", version.version)
    assert reference is not None
    assert len(labels.scores) == 60
    return adapt(reference, labels, [0.5, 0.9])


def test_without_labels_they_are_the_conformal_ones(own: Service) -> None:
    found = ask(own, interval_kinds=["adaptive", "conformal"], intervals=[0.5, 0.9])["intervals"]
    assert [one["kind"] for one in found] == ["conformal"] * 2 + ["adaptive"] * 2
    for conformal, adaptive in zip(found[:2], found[2:], strict=True):
        assert adaptive.pop("adapted_level") == adaptive["level"]
        assert adaptive | {"kind": "conformal"} == close(conformal)


def test_they_are_at_the_level_that_labels_say(labelled: Service) -> None:
    answer = ask(labelled, **ADAPTIVE)
    levels = [one["adapted_level"] for one in answer["intervals"]]
    assert levels == [one.adapted for one in expected(labelled)]
    deviation = np.sqrt(answer["variance"]["total"])
    for one, interval in zip(expected(labelled), answer["intervals"], strict=True):
        assert one.score is not None
        width = one.score * deviation
        np.testing.assert_allclose(interval["upper"], answer["mean"] + width, rtol=1e-4)
        np.testing.assert_allclose(interval["lower"], answer["mean"] - width, rtol=1e-4)
    plain = ask(labelled)
    assert [one["kind"] for one in plain["intervals"]] == ["credible", "conformal"]
    assert plain["mean"] == close(answer["mean"])


def test_feedback_tells_coverage_with_and_without(labelled: Service) -> None:
    told = labelled.http.get("/models/price/feedback").json()["metrics"]
    assert told["adapted_level"]["0.9"] == expected(labelled)[1].adapted
    for kind in ("coverage", "conformal_coverage", "adaptive_coverage"):
        assert told[kind].keys() == {"0.5", "0.8", "0.9", "0.95"}
    # Of a correct version nearly all labels would be as near: intervals of 90 % hold them all.
    assert told["adaptive_coverage"]["0.9"] == 1.0
    level = told["adapted_level"]["0.9"]
    gauge = f'credence_feedback_adapted_level{{level="0.9",model="price",version="2"}} {level}'
    assert gauge in labelled.http.get("/metrics").text


def test_tables_have_their_columns_and_levels(labelled: Service) -> None:
    answer = ask(labelled, **ADAPTIVE)["intervals"]
    levels = {str(one["level"]): one["adapted_level"] for one in answer}

    query = {"interval_kinds": "adaptive", "intervals": "0.5,0.9", "model": "price"}
    columns = {name: [row[name] for row in PRICE] for name in PRICE[0]}
    table = table_of(send_arrow(labelled.http, columns, **query))
    assert json.loads(table.schema.metadata[b"adapted_levels"]) == levels
    for one in answer:
        assert table[f"adaptive_lower_{one['level']}"].to_pylist() == close(one["lower"])


def test_a_job_keeps_the_levels_of_its_start(labelled: Service) -> None:
    dataset = labelled.context.registry.get("price").dataset
    body = {"model": "price", "dataset": dataset, "chunk_rows": 50} | ADAPTIVE
    job = labelled.post("/predict/batch", body)
    levels = {str(one.level): one.adapted for one in expected(labelled)}
    rows = {"model": "price", "inputs": PRICE}
    tell(labelled, **rows, truth=[100.0] * 3)  # comes too late for the job
    table = result_of(labelled, done(labelled, job))
    assert json.loads(table.schema.metadata[b"adapted_levels"]) == levels
    lower, upper = (table[f"adaptive_{end}_0.9"].to_numpy() for end in ("lower", "upper"))
    deviation = np.sqrt(table["total_variance"].to_numpy())
    np.testing.assert_allclose(upper - lower, 2 * expected_score(table) * deviation, rtol=1e-4)


def expected_score(table: pa.Table) -> float:
    """Half the width of the first row's interval, in deviations: the same in all chunks."""
    half = (table["adaptive_upper_0.9"][0].as_py() - table["mean"][0].as_py()) or 0.0
    return float(half / np.sqrt(table["total_variance"][0].as_py()))


def test_the_open_inference_protocol_has_an_output_of_them(labelled: Service) -> None:
    row = {"size": 0.5, "wood": "oak", "wet": True, "day": "2026-01-01T00:00:00Z"}
    body = {
        "inputs": tensors({name: [value] for name, value in row.items()}),
        "outputs": [{"name": "adaptive_quantiles"}],
        "parameters": {"intervals": "0.5,0.9"},
    }
    answer = labelled.post("/v2/models/price/infer", body)
    online = ask(labelled, inputs=[row], **ADAPTIVE)["intervals"]
    output = outputs_of(answer)["adaptive_quantiles"]
    assert output["data"] == close([one[end][0] for one in online for end in ("lower", "upper")])
    assert output["shape"] == [1, 2, 2]
    levels = ",".join(str(one["adapted_level"]) for one in online)
    assert answer.json()["parameters"]["adapted_levels"] == levels


def test_a_classifier_has_none(own: Service) -> None:
    body = {"model": "tree", "inputs": TREES, "interval_kinds": ["adaptive"]}
    answer = own.post("/predict", body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == "/interval_kinds"


@pytest.mark.anyio
async def test_while_the_database_is_away_the_last_levels_are_used(labelled: Service) -> None:
    version = labelled.context.registry.get("price")
    model = read_model(labelled.context.registry.path(version))
    options = model.resolve(PredictOptions(intervals=(0.5, 0.9), interval_kinds=("adaptive",)))
    labels = Labels((0.1, 2.0, 3.0), (0, 0, 0))
    answers = [labels, Unavailable("away"), Unavailable("away")]

    def read(name: str, number: int) -> Labels:
        answer = answers.pop(0)
        if isinstance(answer, Unavailable):
            raise answer
        return answer

    known = adaptation.Adaptation(read)
    first = await known.resolve(version, model, options)
    assert (await known.resolve(version, model, options)).adapted == first.adapted != ()
    with pytest.raises(Unavailable):
        await adaptation.Adaptation(read).resolve(version, model, options)
