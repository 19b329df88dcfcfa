"""Labels over HTTP: stored predictions, what their truth says, and what /metrics tells of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa
from scipy import stats

from core.database.schema import PredictionRow
from core.datasets.columns.packing import unpack
from models.artifact.files import read_model
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from tests.app.conftest import MakeService
from tests.app.running import Service, serving
from worker.cleaner import Cleaner

LEVELS = (0.5, 0.8, 0.9, 0.95)
PRICE = [{"size": 0.5, "wood": "oak", "wet": True, "day": None}, {"size": None, "wood": "new", "wet": None, "day": "2026-01-05T00:00:00Z"}, {"size": -1.0, "wood": None, "wet": False, "day": "2026-02-01T12:30:00Z"}]  # fmt: skip # noqa: E501
TREES = [{"x": 0.1, "y": 0.2, "image": [[0.1, 0.0], [0.0, 0.2]]}] * 2


@pytest.fixture
def own(make_service: MakeService) -> Service:
    return make_service()


def stored(service: Service, **body: Any) -> dict[str, Any]:
    answer = service.post("/predict", {"model": "price", "inputs": PRICE, "store": True} | body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def tell(service: Service, status: int = 201, **body: Any) -> dict[str, Any]:
    answer = service.post("/feedback", body)
    assert answer.status_code == status, answer.text
    document: dict[str, Any] = answer.json()
    return document


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
        {"sampler": "moments"},
        {"sampler": "monte_carlo", "samples": 3000, "target_mc_error": 0.01},
        {"return_draws": True, "samples": 5},
        {"model": "tree", "inputs": TREES, "samples": 10},
    ],
)
def test_a_stored_prediction_is_answered_again_the_same(
    service: Service, options: dict[str, Any]
) -> None:
    answer = stored(service, **options)
    assert next(iter(answer)) == "id"
    again = answered_again(service, answer["id"])
    np.testing.assert_allclose(again.mean, answer["mean"], rtol=1e-6)
    for kind, values in again.variance.items():
        np.testing.assert_allclose(values, answer["variance"][kind], rtol=1e-6)
    for interval, told in zip(again.intervals, answer["intervals"], strict=True):
        assert interval.lower.tolist() == pytest.approx(told["lower"], rel=1e-6)
    assert (again.samples, again.seed) == (answer["samples"], answer["seed"])


def test_without_store_nothing_is_kept_and_no_id_told(service: Service) -> None:
    def count() -> int:
        with service.context.database.read() as session:
            return session.scalars(sa.select(sa.func.count()).select_from(PredictionRow)).one()

    before = count()
    assert "id" not in stored(service, store=False)
    assert count() == before


def test_an_arrow_answer_has_the_id_in_its_metadata(service: Service) -> None:
    answer = service.http.post(
        "/predict",
        json={"model": "price", "inputs": PRICE, "store": True},
        headers={"Accept": "application/vnd.apache.arrow.stream"},
    )
    metadata = pa.ipc.open_stream(answer.content).schema.metadata
    assert metadata is not None
    again = answered_again(service, metadata[b"id"].decode())
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table["mean"].to_pylist() == pytest.approx(again.mean.tolist(), rel=1e-6)


def test_the_scores_are_those_of_the_prediction(own: Service) -> None:
    """Almost all variance of these models is one Gaussian's: SciPy's density within a per cent."""
    answer = stored(own)
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
        assert metrics["coverage"][f"{level:g}"] == (off_centre < level).mean()
    assert told["rolling"]["metrics"].items() >= metrics.items()
    rows = tell(own, model="price", inputs=PRICE, truth=truth)
    assert rows["metrics"] == metrics
    assert rows["prediction"] is None


def test_a_label_of_weight_2_counts_as_two_rows(own: Service) -> None:
    """Also in the window, beside labels without weights."""
    rows = {"model": "price", "inputs": PRICE}
    told = tell(own, **rows, truth=[0.0, 1.0, 2.0], weights=[2, 0, 1])
    assert told["metrics"]["rows"] == 2
    assert told["metrics"]["weight"] == 3
    alone = [tell(own, model="price", inputs=PRICE[i : i + 1], truth=[float(i)]) for i in range(3)]
    one, _, three = (each["metrics"]["mae"] for each in alone)
    assert told["metrics"]["mae"] == pytest.approx((2 * one + three) / 3)
    window = alone[-1]["rolling"]["metrics"]
    assert (window["rows"], window["weight"]) == (5, 6)


def test_classes_are_told_by_their_names(own: Service) -> None:
    told = tell(own, model="tree", inputs=TREES, truth=["alder", None])
    assert told["rows"] == 1
    probability = own.post("/predict", {"model": "tree", "inputs": TREES}).json()["mean"][0][0]
    metrics = told["metrics"]
    assert metrics["log_likelihood"] == pytest.approx(np.log(probability), rel=1e-5)
    assert metrics["accuracy"] in (0, 1)
    assert metrics["calibration_error"] == metrics["ece"]
    assert own.metric("credence_feedback_window_rows", model="tree", version="1") == 1


def test_labels_can_be_completed_and_corrected_and_count_once(own: Service) -> None:
    answer = stored(own)
    first = tell(own, prediction=answer["id"], truth=[*answer["mean"][:2], None])
    again = tell(own, 200, prediction=answer["id"], truth=[*answer["mean"][:2], None])
    assert (again["id"], again["rolling"]["metrics"]) == (first["id"], first["rolling"]["metrics"])
    assert first["rolling"]["metrics"]["rows"] == 2
    corrected = [mean + 1 for mean in answer["mean"]]
    told = tell(own, 200, prediction=answer["id"], truth=corrected)
    rolling = own.http.get("/models/price/feedback").json()
    assert rolling == told["rolling"]
    assert rolling["metrics"]["rows"] == 3
    assert rolling["metrics"]["rmse"] == pytest.approx(1, rel=1e-6)
    assert own.metric("credence_feedback_rows_total", model="price") == 3


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


def test_an_honest_model_stays_within_chance_and_a_drifted_one_does_not(own: Service) -> None:
    """Truth drawn from the predictions themselves is covered as often as they say, within 4
    binomial standard deviations at each of 4 levels (one failure in 4,000 seeds, and the seed is
    fixed); three standard deviations further on it is not, and the alert's condition holds. The
    p-value is Fisher's, as SciPy has it.
    """
    random, rows = np.random.default_rng(0), 400
    sizes = [{**PRICE[0], "size": float(size)} for size in random.uniform(-2, 2, rows)]
    for shift, is_honest in ((0.0, True), (3.0, False)):
        version = 2 if is_honest else 1
        answer = stored(own, inputs=sizes, version=version)
        scale = np.sqrt(answer["variance"]["total"])
        truth = np.array(answer["mean"]) + scale * (random.normal(size=rows) + shift)
        metrics = tell(own, prediction=answer["id"], truth=truth.tolist())["rolling"]["metrics"]
        errors = {level: np.sqrt(level * (1 - level) / rows) for level in LEVELS}
        gaps = [metrics["coverage"][f"{level:g}"] - level for level in LEVELS]
        assert metrics["calibration_error"] == pytest.approx(np.abs(gaps).mean())
        within = [abs(gap) < 4 * errors[level] for gap, level in zip(gaps, LEVELS, strict=True)]
        assert all(within) if is_honest else not any(within)
        of = {"model": "price", "version": str(version)}
        for level in LEVELS:
            covered = own.metric("credence_feedback_coverage", level=f"{level:g}", **of)
            assert covered == metrics["coverage"][f"{level:g}"]
        check = metrics["check"]
        test = check["coverage"]["0.9"]
        assert (check["labels"], check["rows"], check["alarm_p_value"]) == (rows, rows, 1e-4)
        is_low = stats.hypergeom(
            rows + test["held_out_rows"],
            test["inside"] + test["held_out_inside"],
            rows,
        ).cdf(test["inside"])
        assert test["p_value"] == pytest.approx(is_low, rel=1e-9)
        assert (test["p_value"] <= check["alarm_p_value"]) is not is_honest
        for name, key in (
            ("coverage_p_value", "p_value"),
            ("expected_coverage", "held_out_coverage"),
        ):
            gauge = own.metric(f"credence_feedback_{name}", level="0.9", **of)
            assert gauge == pytest.approx(test[key], rel=1e-12)
        assert own.metric("credence_feedback_alarm_p_value", **of) == check["alarm_p_value"]
        for name in ("log_likelihood", "expected_log_likelihood", "calibration_error"):
            assert own.metric(f"credence_feedback_{name}", **of) == metrics[name]
        page = own.http.get(f"/ui/models/price/versions/{version}", headers={"Accept": "text/html"})
        trained = own.http.get(f"/models/price/versions/{version}").json()["metrics"]
        held_out = trained["coverage"]["0.9"]  # as the page says it beside the scores
        said = (
            f"Of the last {rows} true values, {100 * test['inside'] / rows:.0f} % were inside the "
            f"90 % intervals; of the held-out rows, {100 * held_out:.0f} % were"
            f"{'.' if is_honest else '. The intervals are too narrow now'}"
        )
        assert said in page.text
        for address in ("/", "/ui/models", "/ui/models/price", "/ui/system"):
            shown = own.http.get(address, headers={"Accept": "text/html"}).text
            assert (said in shown) is not is_honest, address
        if is_honest:
            honest = metrics
    assert metrics["log_likelihood"] < honest["log_likelihood"] - 1
    assert metrics["calibration_error"] > 5 * honest["calibration_error"]


def test_the_window_is_a_setting(make_service: MakeService) -> None:
    service = make_service(feedback_rows=100)
    rows = [PRICE[0]] * 70
    for truth in (0.0, 1.0):
        told = tell(service, model="price", inputs=rows, truth=[truth] * 70)
    assert told["rolling"]["window"] == told["rolling"]["metrics"]["rows"] == 100


def test_what_is_said_outlives_the_process(make_service: MakeService) -> None:
    service = make_service()
    rolling = tell(service, model="price", inputs=PRICE, truth=[0.0] * 3)["rolling"]
    data_dir = service.context.settings.data_dir
    with serving(data_dir) as other:
        assert other.http.get("/models/price/feedback").json() == rolling
        of = {"model": "price", "version": "2"}
        assert other.metric("credence_feedback_window_rows", **of) == 3


@pytest.mark.parametrize(
    ("body", "status", "path", "message"),
    [
        ({"prediction": "pred_none", "truth": [1]}, 404, None, "there is no prediction"),
        ({"truth": [1]}, 422, "/prediction", "give either"),
        ({"prediction": "p", "model": "price", "truth": [1]}, 422, "/prediction", "give either"),
        ({"prediction": "p", "inputs": [], "truth": [1]}, 422, "/inputs", "leave it out"),
        ({"prediction": "p", "prune": 0.5, "truth": [1]}, 422, "/prune", "leave it out"),
        ({"model": "price", "truth": [1]}, 422, "/inputs", "at least one row"),
        ({"model": "price", "inputs": PRICE}, 422, "/truth", "must be a list"),
        ({"model": "price", "inputs": PRICE, "truth": 3}, 422, "/truth", "must be a list"),
        ({"model": "price", "inputs": PRICE, "truth": [1]}, 422, "/truth", "1 values for 3 rows"),
        ({"model": "price", "inputs": PRICE, "truth": [None] * 3}, 422, "/truth", "only null"),
        (
            {"model": "price", "inputs": PRICE, "truth": [1] * 3, "weights": [1]},
            422,
            "/weights",
            "one number for each of 3 rows",
        ),
        (
            {"model": "price", "inputs": PRICE, "truth": [1] * 3, "weights": [1, -1, 1]},
            422,
            "/weights/1",
            "0 or more",
        ),
        (
            {"model": "price", "inputs": PRICE, "truth": [1] * 3, "weights": [0] * 3},
            422,
            "/weights",
            "are 0 for all rows",
        ),
        ({"model": "price", "inputs": PRICE, "truth": [1, "a", 2]}, 422, "/truth/1", "a number"),
        ({"model": "price", "inputs": PRICE, "truth": [1, 2, 1e39]}, 422, "/truth/2", "finite"),
        ({"model": "price", "inputs": PRICE, "truth": [1, True, 2]}, 422, "/truth/1", "a number"),
        ({"model": "tree", "inputs": TREES, "truth": ["oak", "ash"]}, 422, "/truth/1", "alder, b"),
        ({"model": "tree", "inputs": TREES, "truth": ["oak", 1]}, 422, "/truth/1", "not a class"),
        ({"model": "tree", "inputs": TREES, "truth": [[], None]}, 422, "/truth/0", "a class"),
        ({"model": "none", "inputs": PRICE, "truth": [1, 2, 3]}, 404, None, "no model"),
        ({"model": "price", "prune": 0.3, "inputs": PRICE, "truth": [1, 2, 3]}, 422, "/prune", ""),
        ({"model": "price", "horizon": 3, "inputs": PRICE, "truth": [1] * 3}, 422, "/horizon", ""),
        ({"model": "price", "future": {}, "inputs": PRICE, "truth": [1] * 3}, 422, "/future", ""),
        ({"model": "price", "inputs": [{}], "truth": [1]}, 422, "/inputs/0/size", "required"),
        ({"model": "price", "inputs": PRICE, "truth": [1] * 3, "more": 1}, 422, "/more", "unknown"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(
    service: Service, body: dict[str, Any], status: int, path: str | None, message: str
) -> None:
    problem = tell(service, status, **body)
    assert message in problem["detail"]
    if path:
        assert problem["errors"][0]["path"] == path


def test_nan_is_refused_and_what_is_no_json_not_parsed(service: Service) -> None:
    headers = {"Content-Type": "application/json"}
    body = b'{"model": "price", "inputs": [[1, "oak", true, null]], "truth": [NaN]}'
    answer = service.http.post("/feedback", content=body, headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "/truth/0")
    assert service.http.post("/feedback", content=b"{", headers=headers).status_code == 400
    unknown = service.http.get("/models/price/feedback?version=9")
    assert unknown.status_code == 404


def test_a_file_is_read_as_that_of_a_prediction(own: Service) -> None:
    """The scores of a CSV file are those of the same rows in JSON; the query has the options."""
    csv = "size;wood;wet;day;came\n0,5;oak;true;;1,5\n-1,0;;false;2026-02-01T12:30:00Z;\n"
    rows = [PRICE[0], {**PRICE[2], "wood": None}]
    expected = tell(own, model="price", inputs=rows, truth=[1.5, None])
    asked = {"params": {"model": "price", "version": "2", "truth": "came"}, "content": csv}
    headers = {"Content-Type": "text/csv", "Idempotency-Key": "one"}
    answer = own.http.post("/feedback", headers=headers, **asked)
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert found["metrics"] == expected["metrics"]
    assert (found["rows"], found["ignored"]) == (1, [])
    assert found["reading"]["delimiter"] == ";"
    assert own.http.post("/feedback", headers=headers, **asked).json() == found  # not counted twice
    assert own.http.get("/models/price/feedback").json() == found["rolling"]


@pytest.mark.parametrize(
    ("params", "csv", "path", "message"),
    [
        ({"model": "price"}, "size,y\n1,2\n", "/truth", "required"),
        ({"model": "price", "truth": "y", "samples": "3"}, "size,y\n1,2\n", "/samples", "unknown"),
        ({"model": "price", "truth": "z"}, "size,y\n1,2\n", "/inputs", "no column 'z'"),
        (
            {"model": "price", "truth": "size"},
            "size,wood,wet,day\n1,oak,true,\n",
            "/inputs",
            "is a feature",
        ),
        ({"model": "price", "truth": "y"}, "size,y\n1,2\n", "/inputs", "lacks the columns wood"),
    ],
)
def test_a_file_without_labels_is_refused(
    service: Service, params: dict[str, str], csv: str, path: str, message: str
) -> None:
    answer = service.http.post(
        "/feedback", params=params, content=csv, headers={"Content-Type": "text/csv"}
    )
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["path"] == path
    assert message in error["message"]


def test_the_limits_are_those_of_predictions(make_service: MakeService) -> None:
    service = make_service(max_work=1000, max_queued_work=1000, max_stored_bytes=2048)
    body = {"model": "price", "inputs": [PRICE[0]] * 1001}  # a row is at least one sample's work
    too_much = service.post("/feedback", body | {"truth": [1.0] * 1001})
    assert too_much.status_code == 413
    assert "CREDENCE_MAX_WORK" in too_much.json()["detail"]
    random = np.random.default_rng(0)
    rows = [{**PRICE[0], "size": size} for size in random.normal(size=500).tolist()]
    body = {"model": "price", "inputs": rows, "samples": 1}
    assert service.post("/predict", body).status_code == 200
    too_large = service.post("/predict", body | {"store": True})
    assert too_large.status_code == 413
    assert "CREDENCE_MAX_STORED_BYTES" in too_large.json()["detail"]


def test_without_a_database_only_what_is_to_be_stored_fails(make_service: MakeService) -> None:
    service = make_service()
    assert stored(service)
    path = Path(service.context.database.engine.url.database or "")
    service.context.database.dispose()
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    body = {"model": "price", "inputs": PRICE}
    assert service.post("/predict", body).status_code == 200
    refused = service.post("/predict", body | {"store": True})
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    assert service.post("/feedback", body | {"truth": [1, 2, 3]}).status_code == 503
    text = service.http.get("/metrics").text
    assert "credence_feedback_coverage{" not in text
    assert "# TYPE credence_feedback_coverage gauge" in text


def test_what_belongs_to_a_version_goes_with_it(own: Service) -> None:
    answer = stored(own)
    tell(own, prediction=answer["id"], truth=[0.0] * 3)
    assert own.http.delete("/models/price/versions/2").status_code == 204
    assert tell(own, 404, prediction=answer["id"], truth=[0.0] * 3)
    of = {"model": "price", "version": "2"}
    assert own.metric("credence_feedback_window_rows", **of) == 0


def test_the_worker_sweeps_what_is_older_than_it_may_be(make_service: MakeService) -> None:
    service = make_service()
    old, new = stored(service)["id"], stored(service)["id"]
    days = service.context.settings.stored_days
    with service.context.database.begin() as session:
        row = session.get(PredictionRow, old)
        assert row is not None
        row.created_at -= timedelta(days=days, seconds=1)

    Cleaner(service.context).clean()
    body = {"prediction": old, "truth": [0.0] * 3}
    assert service.post("/feedback", body).status_code == 404
    assert tell(service, prediction=new, truth=[0.0] * 3)
