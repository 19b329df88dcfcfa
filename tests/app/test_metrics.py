"""What /metrics tells of the state of the service, beside what is true of it."""

import threading

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from scipy import stats

from app.metrics import bounded_query
from app.metrics.collectors import BacklogCollector
from core.exceptions import Unavailable
from core.jobs.backlog import Backlog
from tests.app.conftest import MakeService

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


def test_who_explores_says_nothing_of_drift(make_service: MakeService) -> None:
    """The dashboard asks for what lies beyond the training rows, to show it."""
    service = make_service()
    strange = {"model": "price", "inputs": [[50.0, "oak", True, None]] * 3}
    for headers, counted in (({"X-Credence-Exploring": "1"}, 0), ({}, 3)):
        assert service.post("/predict", strange, headers=headers).status_code == 200
        for name in ("out_of_distribution_rows_total", "epistemic_share_count"):
            assert service.metric(f"credence_predict_{name}", model="price") == counted


def test_jobs_and_workers_are_read_from_the_database(make_service: MakeService) -> None:
    service = make_service()
    assert service.metric("credence_database_up") == 1
    service.context.workers.beat("w", "cpu", service.context.jobs.list().data[0].created_at)
    assert service.metric("credence_workers_live", device="cpu") == 1
    assert service.metric("credence_workers_known", device="cpu") == 1
    body = {"model": "price", "dataset": service.context.jobs.list().data[0].dataset}
    assert service.post("/train", body | {"target": "tree"}).status_code == 202
    assert service.metric("credence_job_queue_length") == 1
    assert service.metric("credence_job_queue_oldest_seconds") > 0
    assert service.metric("credence_jobs_claimed") == 0


def test_a_hanging_database_holds_up_no_scrape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded_query, "DATABASE_SECONDS", 0.01)
    answers, asked = threading.Event(), []

    def hang() -> Backlog:
        asked.append(threading.current_thread())
        answers.wait(120)
        raise Unavailable("too late")

    registry = CollectorRegistry()
    registry.register(BacklogCollector(hang))
    for _ in range(2):
        assert "credence_database_up 0.0" in generate_latest(registry).decode()
    assert len(asked) == 1
    answers.set()
