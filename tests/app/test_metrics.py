"""What /metrics tells of the state of the service, beside what is true of it."""

import shutil
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from scipy import stats

from app.metrics.bounded_query import DATABASE_SECONDS
from app.metrics.collectors import BacklogCollector
from core.exceptions import Unavailable
from core.jobs.backlog import Backlog
from models.prediction.options import PredictOptions
from tests.app.conftest import MakeService
from tests.app.running import class_columns, regression_columns

ROW = [1.0, "oak", True, None]


def test_loaded_models_and_what_each_should_show(make_service: MakeService) -> None:
    service = make_service()
    assert service.metric("credence_models_loaded") == 0
    for model, version in (("price", 1), ("price", 2)):
        body = {"model": model, "version": version, "inputs": [ROW]}
        assert service.post("/predict", body).status_code == 200
    cache = service.services.predictor.cache
    assert service.metric("credence_models_loaded") == 2
    assert service.metric("credence_models_loaded_bytes") == cache.num_bytes > 0
    of = {"model": "price", "version": "2"}
    version = service.http.get("/models/price/versions/2").json()
    (full, _), metrics = version["variants"], version["metrics"]
    ratio = service.metric("credence_model_out_of_distribution_ratio", **of)
    assert ratio == full["out_of_distribution"]["false_alarm_rate"]
    assert ratio == pytest.approx(1 / 13)  # of a tenth of 120 rows, the largest is the bound
    bound = service.metric("credence_model_out_of_distribution_bound", **of)
    assert bound == pytest.approx(stats.beta(1, 12).isf(0.001))
    share = service.metric("credence_model_epistemic_share", **of)
    above = service.metric("credence_model_epistemic_share_bound", **of)
    gain = share * np.log(share / above) + (1 - share) * np.log((1 - share) / (1 - above))
    assert 12 * gain == pytest.approx(np.log(1000))
    assert share == metrics["epistemic_share"]
    assert 0 < share < 1


def test_the_training_time_share_is_the_mean_of_what_predictions_tell(
    make_service: MakeService,
) -> None:
    """Over the rows of an evaluation, so that both mean the same rows and samples.

    Variances are differences of float32 sums, whose order depends on threads and kernels: they
    agree in four digits (`tests/models/prediction/test_compiled`). Other samples move the third.
    """
    service = make_service()
    service.post("/predict", {"model": "price", "version": 1, "inputs": [ROW]})
    (loaded,) = service.services.predictor.cache.loaded()
    stored = service.context.datasets.get(loaded.version.dataset)
    names = [column.name for column in stored.columns]
    columns = service.context.datasets.columns(stored.id, names)
    scored = loaded.model.evaluate(columns)
    answer = loaded.model.predict(columns, PredictOptions(samples=100))
    assert len(answer.mean) == len(regression_columns()["price"])
    others = loaded.model.predict(columns, PredictOptions(samples=50))
    assert scored["epistemic_share"] == pytest.approx(answer.epistemic_share.mean(), rel=2e-4)
    assert scored["epistemic_share"] != pytest.approx(others.epistemic_share.mean(), rel=2e-4)


def test_who_explores_says_nothing_of_drift(make_service: MakeService) -> None:
    """The dashboard asks for what lies beyond the training rows, to show it."""
    service = make_service()
    strange = {"model": "price", "inputs": [[50.0, "oak", True, None]] * 3}
    headers = {"X-Credence-Exploring": "1"}
    counted = partial(service.metric, "credence_predict_out_of_distribution_rows_total")
    assert service.post("/predict", strange, headers=headers).status_code == 200
    assert counted(model="price") == 0
    assert service.metric("credence_predict_epistemic_share_count", model="price") == 0
    assert service.metric("credence_predict_expected_loss_rows_total", model="price") == 0
    assert service.metric("credence_predict_rows_total") == 3
    assert service.post("/predict", strange).status_code == 200
    assert counted(model="price") == 3
    assert service.metric("credence_predict_epistemic_share_count", model="price") == 3


def test_the_loss_that_predictions_expect_is_counted_beside_what_was_promised(
    make_service: MakeService,
) -> None:
    service = make_service()
    columns = regression_columns()
    inputs = {name: values for name, values in columns.items() if name != "price"}
    answer = service.post("/predict", {"model": "price", "inputs": inputs}).json()
    loss = np.sqrt(answer["variance"]["total"])
    counted = partial(service.metric, model="price")
    assert counted("credence_predict_expected_loss_rows_total") == len(loss)
    assert counted("credence_predict_expected_loss_total") == pytest.approx(loss.sum())
    squares = counted("credence_predict_expected_loss_squares_total")
    assert squares == pytest.approx(np.square(loss).sum())
    (loaded,) = service.services.predictor.cache.loaded()
    promise = loaded.model.variant(0.0).promise
    assert promise is not None
    of = {"model": "price", "version": "2"}
    assert service.metric("credence_model_expected_loss", **of) == promise.loss
    assert service.metric("credence_model_expected_loss_error", **of) == promise.loss_error
    assert promise.loss == pytest.approx(loss.mean(), rel=0.5)  # of 12 other rows


def test_the_loss_of_classes_is_the_share_of_wrong_labels(make_service: MakeService) -> None:
    service = make_service()
    inputs = {name: values for name, values in class_columns().items() if name != "tree"}
    answer = service.post("/predict", {"model": "tree", "inputs": inputs}).json()
    loss = 1 - np.max(answer["probabilities"], axis=1)
    counted = service.metric("credence_predict_expected_loss_total", model="tree")
    assert counted == pytest.approx(loss.sum(), rel=1e-6)
    assert 0 <= service.metric("credence_model_expected_loss", model="tree", version="1") < 1


def test_the_queue_of_the_engine_is_empty_when_nothing_waits(make_service: MakeService) -> None:
    service = make_service()
    for name in ("predict_queued_work", "predict_queued_requests", "engine_stalled_seconds"):
        assert f"credence_{name} 0.0" in service.http.get("/metrics").text
    with service.services.predictor.admission.entered("speed", 10, 30, 300):
        assert service.metric("credence_predict_queued_work") == 300
        assert service.metric("credence_predict_queued_requests") == 1


def test_the_disk_is_the_data_directorys(make_service: MakeService) -> None:
    service = make_service()
    usage = shutil.disk_usage(service.context.settings.data_dir)
    assert service.metric("credence_disk_size_bytes") == usage.total
    assert service.metric("credence_disk_free_bytes") == pytest.approx(usage.free, rel=0.2)


def test_jobs_and_workers_are_read_from_the_database(make_service: MakeService) -> None:
    service = make_service()
    assert service.metric("credence_database_up") == 1
    service.context.workers.beat("w", "cpu", service.context.jobs.list().data[0].created_at)
    assert service.metric("credence_workers_live", device="cpu") == 1
    assert service.metric("credence_workers_known", device="cpu") == 1
    body = {"model": "price", "dataset": service.context.jobs.list().data[0].dataset}
    assert service.post("/train", body | {"target": "tree"}).status_code == 202
    assert service.metric("credence_job_queue_length") == 1
    assert 0 < service.metric("credence_job_queue_oldest_seconds") < 60
    assert service.metric("credence_jobs_claimed") == 0


def test_metrics_that_need_no_database_outlive_it(make_service: MakeService) -> None:
    service = make_service()
    path = Path(service.context.database.engine.url.database or "")
    service.context.database.dispose()
    path.rename(path.with_suffix(".away"))
    path.mkdir()  # SQLite would begin a new file otherwise
    text = service.http.get("/metrics").text
    assert "credence_database_up 0.0" in text
    assert "credence_job_queue_length" not in text
    assert "credence_predict_queued_work 0.0" in text


def test_a_database_that_hangs_holds_up_a_scrape_shortly_and_takes_one_thread() -> None:
    answered = threading.Event()

    def hang() -> Backlog:
        answered.wait(30)
        raise Unavailable("too late")

    registry = CollectorRegistry()
    registry.register(BacklogCollector(hang))
    before, started = set(threading.enumerate()), time.monotonic()
    for _ in range(2):
        assert "credence_database_up 0.0" in generate_latest(registry).decode()
    assert time.monotonic() - started == pytest.approx(2 * DATABASE_SECONDS, abs=1)
    assert len(set(threading.enumerate()) - before) == 1  # threads of other tests may end meanwhile
    answered.set()


def test_a_share_of_rows_is_finite(make_service: MakeService) -> None:
    """Shares of classes, too, lie in [0, 1] and say something."""
    service = make_service()
    metrics = service.http.get("/models/tree/versions/1").json()["metrics"]
    assert 0 < metrics["epistemic_share"] < 1
    assert np.isfinite(metrics["epistemic_share"])
