"""Every query of every dashboard, asked of a real Prometheus that scrapes a real service."""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from credence.client import Client
from tests.credence.running import Service, serving
from tests.http_server import Answer, http_server
from tests.monitoring.running import (
    Prometheus,
    alertmanager,
    free_port,
    program,
    prometheus,
)
from tests.monitoring.test_alerts import DASHBOARDS, PANELS
from tests.waiting import wait_until

pytestmark = pytest.mark.stack

GPU = (Path(__file__).parent / "dcgm.prom").read_bytes()
QUICK = {"network": {"hidden": [8]}, "training": {"epochs": 3}, "pruning": []}
LONG = {"network": {"hidden": [8]}, "training": {"epochs": 100_000, "patience": 100_000}}
VARIABLES = {"$model": ".*", "$samples": ".*", "$__rate_interval": "10s"}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus beside a service that predicts, has trained and is training."""
    program("prometheus")
    directory, port = tmp_path_factory.mktemp("watched"), str(free_port())
    with ExitStack() as stack:
        service = stack.enter_context(serving(directory, CREDENCE_WORKER_METRICS_PORT=port))
        client = stack.enter_context(Client(service.url))
        _train(client, "line", _table(directory), QUICK, wait=True)
        text = {"Content-Type": "text/plain; version=0.0.4"}
        gpu = stack.enter_context(http_server(lambda *_: Answer(GPU, headers=text)))
        targets = {
            "api": service.url.removeprefix("http://"),
            "worker": f"127.0.0.1:{port}",
            "gpu": gpu.removeprefix("http://"),
        }
        address = stack.enter_context(alertmanager(directory))
        watching = stack.enter_context(prometheus(directory, targets, address))
        _wait(watching, {"expr": 'up{job="worker"} == 1', "instant": True})
        stack.enter_context(_load(service))
        _train(client, "line", _table(directory), QUICK, wait=True)
        _label(client, version=1, shift=0.0)
        _label(client, version=2, shift=3.0)
        _train(client, "curve", _table(directory), LONG)
        yield watching


def _table(directory: Path) -> Path:
    path = directory / "line.csv"
    x = np.random.default_rng(0).uniform(-1, 1, 100)
    path.write_text("x,y\n" + "".join(f"{v},{3 * v + 0.1 * v**2}\n" for v in x))
    return path


def _train(
    client: Client, model: str, table: Path, options: dict[str, Any], *, wait: bool = False
) -> None:
    dataset = client.upload(table)["id"]
    job = client.submit_train({"model": model, "dataset": dataset, "target": "y", **options})
    if wait:
        job = client.wait(job["id"], poll_seconds=0.1)
        assert job["status"] == "succeeded", job["error"]


def _label(client: Client, version: int, shift: float) -> None:
    """Truth drawn from what a version predicts, so many standard deviations further up."""
    random = np.random.default_rng(version)
    rows = [{"x": x} for x in random.uniform(-1, 1, 200).tolist()]
    body = {"model": "line", "version": version, "inputs": rows}
    predicted = client.submit_predict(body | {"store": True})
    scale = np.sqrt(predicted["variance"]["total"])
    truth = np.array(predicted["mean"]) + scale * (random.normal(size=200) + shift)
    client.submit_feedback({"prediction": predicted["id"], "truth": truth.tolist()})


@contextmanager
def _load(service: Service) -> Iterator[None]:
    """Some predictions a second of every sample count, a few far from the data, one wrong."""
    stop, url = threading.Event(), f"{service.url}/predict"

    def run() -> None:
        with httpx.Client() as http, suppress(httpx.TransportError):
            while not stop.wait(0.1):
                for samples in (10, 100, 300):
                    rows = [{"x": 0.1}, {"x": 0.2}, {"x": 50.0}]
                    body = {"model": "line", "inputs": rows, "samples": samples}
                    assert http.post(url, json=body).status_code == 200
                http.post(url, json={"model": "line", "inputs": []})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _ask(watching: Prometheus, target: dict[str, Any]) -> list[Any]:
    """What the panel would show of a query: its finite values, series by series."""
    expr = target["expr"]
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    assert "$" not in expr
    series = watching.instant(expr) if target["instant"] else watching.over_time(expr)
    numbers = [[float(value) for _, value in values] for values in series]
    return [finite for values in numbers if (finite := [v for v in values if np.isfinite(v)])]


def _wait(watching: Prometheus, target: dict[str, Any]) -> list[Any]:
    """As `_ask`, once there is something; nothing if there is none in time."""
    with suppress(AssertionError):
        wait_until(lambda: _ask(watching, target))
    return _ask(watching, target)


def test_every_query_of_every_dashboard_shows_something(watched: Prometheus) -> None:
    queries = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
    assert not [(title, target["expr"]) for title, target in queries if not _wait(watched, target)]


def test_numbers_that_must_not_be_zero_under_load_are_not(watched: Prometheus) -> None:
    for expr in (
        "credence_predict_rows:rate5m",
        "credence_predict_batch_work_sum:rate5m",
        'model:credence_predict_out_of_distribution:ratio1h{model="line"}',
        'model:credence_predict_epistemic_share:mean1h{model="line"}',
        'model:credence_model_epistemic_share:max{model="line"}',
        "credence_workers_live:sum",
        "credence_jobs_claimed:max",
    ):
        found = _wait(watched, {"expr": f"{expr} > 0", "instant": True})
        assert found, expr


def test_every_target_answers_and_every_rule_can_be_evaluated(watched: Prometheus) -> None:
    assert not watched.instant("up == 0")
    assert len(watched.instant("up == 1")) == 5
    for group in watched.get("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule


def test_a_healthy_service_raises_no_alarm(watched: Prometheus) -> None:
    """A third of the rows is strange on purpose, as are the labels of one version, and a busy
    machine may be slow: these pend.
    """
    assert not watched.instant('ALERTS{alertstate="firing"}')
    pending = watched.get("query", query='ALERTS{alertstate="pending"}')["result"]
    strange = {"OutOfDistributionRising", "EpistemicShareHigh", "ExpectedLossHigh"}
    expected = strange | {"PredictSlow", "CoverageLow"}
    assert {alert["metric"]["alertname"] for alert in pending} <= expected


def test_only_the_version_whose_labels_are_off_raises_suspicion(watched: Prometheus) -> None:
    query = 'ALERTS{alertname="CoverageLow"}'
    assert _wait(watched, {"expr": query, "instant": True})
    found = watched.get("query", query=query)["result"]
    assert [(a["metric"]["model"], a["metric"]["version"]) for a in found] == [("line", "2")]
    honest = 'model_version_level:credence_feedback_coverage_p_value:max{version="1", level="0.9"}'
    limit = "model_version:credence_feedback_alarm_p_value:max"
    assert watched.instant(f"{honest} > on (model, version) {limit}")


def test_each_model_has_its_variables_values(watched: Prometheus) -> None:
    for board in DASHBOARDS.values():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                (match,) = re.findall(r"label_values\((\w+), (\w+)\)", variable["query"])
                metric, label = match
                assert watched.get(f"label/{label}/values", **{"match[]": metric})
