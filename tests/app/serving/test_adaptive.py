"""Adaptive intervals over HTTP: conformal ones at the level that labels say."""

from typing import Any

import numpy as np
import pytest

from app.serving import adaptation
from models.artifact.files import read_model
from models.evaluation.adaptive import Adapted, adapt
from tests.app.conftest import MakeService
from tests.app.running import Service, answered
from tests.app.serving.wires import close
from tests.app.test_feedback import PRICE, stored, tell

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
    answer = answered(service.post("/predict", {"model": "price", "inputs": PRICE} | body))
    return dict(answer.json())


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
