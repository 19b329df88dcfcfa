"""Health, metrics, documentation, and who may reach the service."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from scipy import stats

from app.access.bind_address import check_bind
from app.metrics import bounded_query
from app.metrics.collectors import BacklogCollector
from app.metrics.metrics import samples_label
from core.access.keys import Keys, Scope
from core.database.database import Database, migrate
from core.exceptions import InvalidSetting, Unavailable
from core.jobs.backlog import Backlog
from core.settings import load_settings
from tests.app.conftest import MakeService
from tests.app.running import Service, answered

ROW = [1.0, "oak", True, None]


def test_live_and_ready(http: httpx.Client) -> None:
    assert http.get("/health/live").json() == {"status": "alive"}
    assert http.get("/health/ready").json() == {
        "status": "ready", "engine": "ok", "database": "ok", "broker": "ok", "artifact_store": "ok",
    }  # fmt: skip


def test_metrics_are_those_of_the_contract(make_service: MakeService) -> None:
    service = make_service()
    body = {"model": "price", "inputs": [ROW] * 4, "samples": 20, "prune": 0.5}
    for _ in range(3):
        assert service.post("/predict", body).status_code == 200
    service.post("/predict", body | {"samples": 0})
    service.post("/predict", body | {"model": "invented-1"})
    service.post("/predict", body | {"model": "invented-2"})

    of = {"model": "price", "samples": "30", "variant": "0.5"}
    assert service.metric("credence_predict_latency_seconds_count", **of) == 3
    for stage in ("decode", "queue", "compute", "encode"):
        assert service.metric("credence_predict_stage_seconds_count", stage=stage) == 3
    requests = "credence_predict_requests_total"
    assert service.metric(requests, model="price", status="200") == 3
    assert service.metric(requests, model="", status="422") == 1
    assert service.metric(requests, model="", status="404") == 2
    assert service.metric("credence_predict_rows_total") == 12
    assert service.metric("credence_predict_batch_work_sum") == 3 * 4 * 20
    assert service.metric("credence_predict_batch_work_count") == 3
    assert service.metric("credence_predict_batch_requests_sum") == 3
    assert service.metric("credence_predict_epistemic_share_count", model="price") == 12
    assert 0 < service.metric("credence_predict_epistemic_share_sum", model="price") < 12
    assert service.metric("credence_jobs", status="succeeded") == 3
    assert service.metric("credence_jobs", status="failed") == 0
    text = service.http.get("/metrics").text
    assert re.search(r'credence_build_info\{.*version="[^"]+"', text)
    assert "invented" not in text
    bounds = {float(b) for b in re.findall(r'latency_seconds_bucket\{le="([\d.e-]+)"', text)}
    assert {0.0005, 0.001, 0.002, 5.0, 10.0, 20.0} <= bounds
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"credence_predict_epistemic_share", "credence_jobs", "credence_build_info"} <= families


def test_the_samples_label_is_rounded_up_to_a_step() -> None:
    labels = {1: "1", 2: "3", 3: "3", 101: "300", 10**6: "10000"}
    assert {samples: samples_label(samples) for samples in labels} == labels


def test_the_documentation_needs_no_network(http: httpx.Client) -> None:
    page = answered(http.get("/docs"))
    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(links) >= 3
    assert all(http.get(link).status_code == 200 for link in links)
    assert not re.search(r"https?://", page.text)


def test_openapi_describes_every_route_with_its_bodies_and_problems(service: Service) -> None:
    document = service.http.get("/openapi.json").json()
    operations = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert {
        ("POST", "/datasets"), ("GET", "/datasets/{dataset_id}/rows"), ("POST", "/train"),
        ("GET", "/jobs/{job_id}/events"), ("POST", "/jobs/{job_id}/resume"),
        ("PUT", "/models/{name}/aliases/{alias}"), ("POST", "/models/{name}/evaluate"),
        ("GET", "/models/{name}/expected"),
        ("POST", "/predict"), ("GET", "/health/ready"), ("GET", "/metrics"),
    } <= operations.keys()  # fmt: skip
    # Those that take no body act on what their path names.
    acts = ("/cancel", "/resume", "/refresh", "/run", "/replay", "/enable")
    for (method, path), operation in operations.items():
        takes_body = method in ("POST", "PUT") and not path.endswith(acts)
        assert ("requestBody" in operation) == takes_body, (method, path)
    schemas = document["components"]["schemas"]
    for reference in re.findall(
        r'"#/components/schemas/([^"]+)"', service.http.get("/openapi.json").text
    ):
        assert reference in schemas
    samples = schemas["PredictRequest"]["properties"]["samples"]  # null: the model chooses
    assert samples["anyOf"][0]["minimum"] == 1
    assert schemas["TrainingConfig"]["properties"]["validation_fraction"]["exclusiveMinimum"] == 0
    assert schemas["TrainRequest"]["properties"]["model"]["pattern"]
    problem = operations["POST", "/predict"]["responses"]["422"]["content"]
    assert problem == {
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
    }


def _unbounded(node: Any, schemas: dict[str, Any], seen: set[str], name: str) -> Iterator[str]:
    """Names of the numbers of a schema that lack an end of their range."""
    if isinstance(node, list):
        for one in node:
            yield from _unbounded(one, schemas, seen, name)
    if not isinstance(node, dict):
        return
    reference = str(node.get("$ref", "")).rpartition("/")[2]
    if reference and reference not in seen:
        seen.add(reference)
        yield from _unbounded(schemas[reference], schemas, seen, name)
    ends = [{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}]
    if node.get("type") in ("number", "integer") and not all(end & node.keys() for end in ends):
        yield name
    for key, inner in node.items():
        if key == "properties":
            for field, one in inner.items():
                yield from _unbounded(one, schemas, seen, field)
        elif "example" not in key:
            yield from _unbounded(inner, schemas, seen, name)


def test_every_number_that_is_taken_has_its_range(http: httpx.Client) -> None:
    """But for those in the target's or the costs' unit, and what a setting bounds."""
    document = http.get("/openapi.json").json()
    free = {"abstain_above", "exceeds", "target_mc_error", "truth", "weights"}
    free |= {"matrix", "over", "under", "abstain"} | {"samples", "parameters"}
    seen: set[str] = set()
    for methods in document["paths"].values():
        for operation in methods.values():
            for one in [operation.get("requestBody", {}), *operation.get("parameters", [])]:
                name = one.get("name", "")
                found = set(_unbounded(one, document["components"]["schemas"], seen, name))
                assert found <= free
    assert {"TrainRequest", "PredictRequest", "BatchRequest"} <= seen


def test_only_this_machine_may_be_served_without_a_key(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path)
    for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1"):
        check_bind(settings, host)
    for host in ("0.0.0.0", "::", "", "10.0.0.7", "example.org", "localhost.evil"):
        with pytest.raises(InvalidSetting, match="CREDENCE_AUTH"):
            check_bind(settings, host)
        check_bind(load_settings(data_dir=tmp_path, auth="off"), host)


def test_other_addresses_may_be_served_with_a_key(tmp_path: Path) -> None:
    check_bind(load_settings(data_dir=tmp_path, admin_key_file=tmp_path / "key"), "0.0.0.0")
    settings = load_settings(data_dir=tmp_path)
    database = Database(settings.sqlalchemy_url)
    migrate(database)
    key, _ = Keys(database).create("first", Scope.PREDICT)
    check_bind(settings, "0.0.0.0")
    Keys(database).revoke(key.id)
    with pytest.raises(InvalidSetting, match="credence keys create"):
        check_bind(settings, "0.0.0.0")
    database.dispose()


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
