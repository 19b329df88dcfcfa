"""Labels over HTTP: stored predictions, what their truth says, /metrics, and adaptive intervals."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.serving import adaptation
from core.datasets.columns.packing import unpack
from models.artifact.files import read_model
from models.evaluation.adaptive import Adapted, adapt
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.app.conftest import MakeService
from tests.app.running import Service, answered
from tests.app.serving.wires import close

LEVELS = (0.5, 0.8, 0.9, 0.95)
PRICE = [{"size": 0.5, "wood": "oak", "wet": True, "day": None}, {"size": None, "wood": "new", "wet": None, "day": "2026-01-05T00:00:00Z"}, {"size": -1.0, "wood": None, "wet": False, "day": "2026-02-01T12:30:00Z"}]  # fmt: skip # noqa: E501
TREES = [{"x": 0.1, "y": 0.2, "image": [[0.1, 0.0], [0.0, 0.2]]}] * 2


def stored(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.post("/predict", {"model": "price", "inputs": PRICE, "store": True} | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def tell(service: Service, status: int = 201, **body: Any) -> dict[str, Any]:
    answer = service.post("/feedback", body)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def answered_again(service: Service, prediction_id: str) -> RowPrediction:
    """What the version says to the question that is kept, read back from its files."""
    kept = service.context.stored_predictions.get(prediction_id)
    version = service.context.registry.get(kept.model, kept.version)
    model: TabularModel = read_model(service.context.registry.path(version))
    return model.predict(unpack(kept.packed.inputs, model.inputs), kept.options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"samples": 30, "seed": 7, "prune": 0.5, "intervals": [0.5, 0.9], "version": 1},
        {"sampler": "monte_carlo", "samples": 3000, "target_mc_error": 0.01},
        {"model": "tree", "inputs": TREES, "samples": 10},
    ],
)
def test_a_stored_prediction_is_answered_again(service: Service, options: dict[str, Any]) -> None:
    answer = stored(service, **options)
    assert next(iter(answer)) == "id"
    again = answered_again(service, answer["id"])
    np.testing.assert_allclose(again.mean, answer["mean"], rtol=1e-6)
    for kind, values in again.variance.items():
        np.testing.assert_allclose(values, answer["variance"][kind], rtol=1e-6)
    for interval, told in zip(again.intervals, answer["intervals"], strict=True):
        assert interval.lower.tolist() == pytest.approx(told["lower"], rel=1e-6)
    assert (again.samples, again.seed) == (answer["samples"], answer["seed"])


def test_the_scores_are_those_of_the_prediction(own: Service) -> None:
    """Almost all variance of known levels is one Gaussian's: SciPy's density within a per cent."""
    inputs = [PRICE[0], PRICE[2] | {"wood": "oak"}, PRICE[2]]
    answer = stored(own, inputs=inputs)
    truth = [mean + 0.5 for mean in answer["mean"]]
    told = tell(own, prediction=answer["id"], truth=truth)
    assert told["id"].startswith("fb_")
    assert (told["model"], told["version"], told["rows"]) == ("price", 2, 3)
    metrics = told["metrics"]
    assert metrics["rmse"] == pytest.approx(0.5, rel=1e-6)
    scale = np.sqrt(answer["variance"]["total"])
    density = stats.norm(answer["mean"], scale).logpdf(truth).mean()
    assert metrics["log_likelihood"] == pytest.approx(density, rel=0.01)
    off_centre = np.abs(2 * stats.norm(0, scale).cdf(0.5) - 1)
    for level in LEVELS:
        assert metrics["coverage"][f"{level:g}"] == pytest.approx((off_centre < level).mean())
    assert told["rolling"]["metrics"].items() >= metrics.items()
    rows = tell(own, model="price", inputs=inputs, truth=truth)
    assert rows["metrics"] == metrics
    assert rows["prediction"] is None


def test_labels_go_to_the_version_that_predicted(own: Service) -> None:
    answer = stored(own, version="champion")
    assert tell(own, prediction=answer["id"], truth=[0.0] * 3)["version"] == 1
    url = "/models/price/feedback"
    assert own.http.get(url).json() == {
        "model": "price",
        "version": 2,
        "window": 1000,
        "updated_at": None,
        "metrics": {"rows": 0},
    }
    for version in ("1", "champion"):
        assert own.http.get(url, params={"version": version}).json()["metrics"]["rows"] == 3


def test_what_is_wrong_is_refused_by_its_place(service: Service) -> None:
    price, trees = {"model": "price", "inputs": PRICE}, {"model": "tree", "inputs": TREES}
    one = {"truth": [1]}
    for body, path in (
        (one, "/prediction"),
        ({"prediction": "p", "model": "price"} | one, "/prediction"),
        ({"prediction": "p", "prune": 0.5} | one, "/prune"),
        ({"model": "price"} | one, "/inputs"),
        (price, "/truth"),
        (price | one, "/truth"),
        (price | {"truth": [None] * 3}, "/truth"),
        (price | {"truth": [1] * 3, "weights": [1]}, "/weights"),
        (price | {"truth": [1] * 3, "weights": [1, -1, 1]}, "/weights/1"),
        (price | {"truth": [1] * 3, "weights": [0] * 3}, "/weights"),
        (price | {"truth": [1, "a", 2]}, "/truth/1"),
        (price | {"truth": [1, 2, 1e39]}, "/truth/2"),
        (price | {"truth": [1, True, 2]}, "/truth/1"),
        (trees | {"truth": ["oak", "ash"]}, "/truth/1"),
        (trees | {"truth": ["oak", 1]}, "/truth/1"),
        (price | {"prune": 0.3, "truth": [1] * 3}, "/prune"),
        (price | {"horizon": 3, "truth": [1] * 3}, "/horizon"),
        ({"model": "price", "inputs": [{}]} | one, "/inputs/0/size"),
    ):
        assert tell(service, 422, **body)["errors"][0]["path"] == path
    tell(service, 404, prediction="pred_none", truth=[1])
    tell(service, 404, model="none", inputs=PRICE, truth=[1] * 3)


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
