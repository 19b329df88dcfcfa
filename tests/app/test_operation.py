"""Health, metrics, documentation, and who may reach the service."""

import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.access.bind_address import check_bind
from app.metrics.metrics import samples_label
from core.access.keys import Keys, Scope
from core.database.database import Database, migrate
from core.exceptions import InvalidSetting
from core.settings import load_settings
from tests.app.conftest import MakeService
from tests.app.running import Service

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
    share = service.metric("credence_predict_epistemic_share_sum", model="price")
    assert 0 < share < 12
    strange = service.metric("credence_predict_out_of_distribution_rows_total", model="price")
    assert strange in (0, 12)
    assert service.metric("credence_jobs", status="succeeded") == 3
    assert service.metric("credence_jobs", status="failed") == 0
    text = service.http.get("/metrics").text
    assert re.search(r'credence_build_info\{.*version="[^"]+"', text)
    assert "invented" not in text
    bounds = {float(b) for b in re.findall(r'latency_seconds_bucket\{le="([\d.e-]+)"', text)}
    assert {0.0005, 0.001, 0.002, 5.0, 10.0, 20.0} <= bounds
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"credence_predict_epistemic_share", "credence_jobs", "credence_build_info"} <= families


@pytest.mark.parametrize(
    ("samples", "label"),
    [(1, "1"), (2, "3"), (3, "3"), (4, "10"), (100, "100"), (101, "300"), (10**6, "10000")],
)
def test_the_samples_label_is_rounded_up_to_a_step(samples: int, label: str) -> None:
    assert samples_label(samples) == label


def test_the_documentation_needs_no_network(http: httpx.Client) -> None:
    page = http.get("/docs")
    assert page.status_code == 200
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
    with_body = {key for key, operation in operations.items() if "requestBody" in operation}
    assert with_body == {
        ("POST", "/datasets"), ("POST", "/train"), ("POST", "/predict"), ("POST", "/predict/batch"),
        ("POST", "/compare"), ("POST", "/feedback"), ("POST", "/datasets/{dataset_id}/columns"),
        ("POST", "/schedules"), ("POST", "/webhooks"),
        ("PUT", "/models/{name}/aliases/{alias}"), ("POST", "/models/{name}/evaluate"),
        ("POST", "/models/{name}/acquire"), ("POST", "/models/{name}/versions"),
        ("PUT", "/datasets/{dataset_id}/sharing"), ("PUT", "/jobs/{job_id}/sharing"),
        ("PUT", "/models/{name}/sharing"), ("POST", "/v2/models/{model}/infer"),
        ("POST", "/v2/models/{model}/versions/{version}/infer"),
    }  # fmt: skip
    schemas = document["components"]["schemas"]
    for reference in re.findall(
        r'"#/components/schemas/([^"]+)"', service.http.get("/openapi.json").text
    ):
        assert reference in schemas
    samples = schemas["PredictRequest"]["properties"]["samples"]  # null: the model chooses
    assert samples["anyOf"][0]["minimum"] == 1
    assert schemas["TrainingConfig"]["properties"]["validation_fraction"]["exclusiveMinimum"] == 0
    assert schemas["TrainRequest"]["properties"]["model"]["pattern"]
    expected = operations["GET", "/models/{name}/expected"]
    asked = {one["name"]: one["schema"] for one in expected["parameters"]}
    assert (asked["level"]["minimum"], asked["level"]["maximum"]) == (0.5, 0.99)
    assert asked["rows"]["maximum"] == 10_000
    assert {"expected", "lower", "upper"} <= schemas["ExpectedScore"]["properties"].keys()
    problem = operations["POST", "/predict"]["responses"]["422"]["content"]
    assert problem == {
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
    }
    assert "HTTPValidationError" not in schemas
    assert "PredictResponse" in schemas


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_this_machine_may_be_served_without_a_key(host: str, tmp_path: Path) -> None:
    check_bind(load_settings(data_dir=tmp_path), host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.7", "example.org", "localhost.evil"])
def test_other_addresses_are_refused_unless_authentication_is_off(
    host: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match="CREDENCE_AUTH=off"):
        check_bind(load_settings(data_dir=tmp_path), host)
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


def test_building_the_application_opens_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    data_dir = tmp_path_factory.mktemp("nothing") / "data"
    code = (
        "import threading; from app.main import create_app;"
        "from core.settings import load_settings;"
        f"create_app(load_settings(data_dir={str(data_dir)!r}));"
        "assert threading.active_count() == 1, threading.enumerate()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert not data_dir.exists()


def test_probes_that_are_answered_are_no_news(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """Health and metrics are asked for every few seconds, by several."""
    for path in ("/health/live", "/metrics", "/health/nowhere", "/models"):
        service.http.get(path)

    def told() -> list[str]:
        lines = (record.msg for record in caplog.records if record.name == "app.http.middleware")
        return [line["path"] for line in lines if isinstance(line, dict)]

    deadline = time.monotonic() + 30  # a line is written after its answer is out
    while "/models" not in told() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told() == ["/health/nowhere", "/models"]
