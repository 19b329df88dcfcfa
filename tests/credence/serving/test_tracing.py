"""One request, followed through API and worker: in the logs by its id, in a trace by its spans."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from credence.client import Client
from tests.credence.running import Service, serving
from tests.http_server import Answer, http_server
from tests.waiting import PATIENCE, wait_until


@dataclass(frozen=True)
class Span:
    """What was sent, with attributes as plain values."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    failed: bool
    attributes: dict[str, object]
    events: list[str]


@dataclass
class Collector:
    """Where it listens, and what has come."""

    url: str
    spans: list[Span]

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def children(self, parent: Span) -> dict[str, Span]:
        return {span.name: span for span in self.spans if span.parent_id == parent.span_id}


def read(body: bytes) -> Iterator[Span]:
    """The spans of a request."""
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = plain(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    service=str(service),
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                    attributes=plain(span.attributes),
                    events=[event.name for event in span.events],
                )


def plain(attributes: object) -> dict[str, object]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value"))
        for pair in attributes  # type: ignore[attr-defined]
    }


FAST = {"OTEL_BSP_SCHEDULE_DELAY": "200", "CREDENCE_LOG_FORMAT": "json"}
COLUMNS = {"x": [0.1 * i for i in range(60)], "y": [0.2 * i for i in range(60)]}
TRAIN = {
    "model": "line",
    "data": {"columns": COLUMNS},
    "target": "y",
    "network": {"hidden": [8]},
    "training": {"epochs": 3},
    "pruning": [0.5],
}
TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
SECRET = "a-callers-own-words"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    spans: list[Span] = []

    def receive(path: str, body: bytes) -> Answer:
        assert path == "/v1/traces"
        spans.extend(read(body))
        return Answer()

    with http_server(receive) as url:
        yield Collector(url, spans)


@pytest.fixture(scope="module")
def service(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("traced")
    with serving(folder, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **FAST) as running:
        yield running


@pytest.fixture(scope="module")
def job(service: Service) -> dict[str, Any]:
    """A training job, asked for with a request id and as part of a caller's trace."""
    headers = {"X-Request-ID": "request-7", "traceparent": f"00-{TRACE}-{CALLER}-01"}
    answer = httpx.post(f"{service.url}/train", json=TRAIN, headers=headers, timeout=120)
    assert answer.status_code == 202, answer.text
    with Client(service.url) as client:
        done = client.wait(answer.json()["id"], poll_seconds=0.1)
    assert done["status"] == "succeeded", done["error"]
    return dict(done)


def eventually(find: Callable[[], list[Span]]) -> Span:
    """The one span that was looked for, once it has come: spans are written after answers."""
    wait_until(find)
    (span,) = find()
    return span


def lines(service: Service, **values: object) -> list[dict[str, Any]]:
    """The lines of the log that have these values."""
    written = [line for line in service.log_file.read_text().splitlines() if line[:1] == "{"]
    parsed = [json.loads(line) for line in written]
    return [line for line in parsed if values.items() <= line.items()]


def test_logs_are_joined_by_the_request_id(service: Service, job: dict[str, Any]) -> None:
    for message in ("request", "job started", "job succeeded"):
        wait_until(partial(lines, service, request_id="request-7", message=message))
    found = lines(service, request_id="request-7")
    of_the_job = lines(service, job_id=job["id"])
    assert {line["request_id"] for line in of_the_job} == {"request-7"}
    for line in found:
        assert line.keys() >= {"timestamp", "level", "logger", "message", "trace_id", "span_id"}
        assert line["trace_id"] == TRACE


def test_a_training_job_is_one_trace_from_the_request_to_its_end(
    service: Service, collector: Collector, job: dict[str, Any]
) -> None:
    worked = eventually(
        lambda: [s for s in collector.named("job") if s.attributes["credence.job.id"] == job["id"]]
    )
    asked = eventually(lambda: [s for s in collector.named("POST /train") if s.trace_id == TRACE])
    assert (asked.service, worked.service) == ("credence-api", "credence-worker")
    assert asked.parent_id == CALLER
    assert (worked.trace_id, worked.parent_id) == (TRACE, asked.span_id)
    assert asked.attributes["http.route"] == "/train"
    assert asked.attributes["http.response.status_code"] == 202
    assert not worked.failed
    children = collector.children(worked)
    assert children["train"].events[:1] == ["stage"]
    order = [children[name] for name in ("load data", "train", "publish")]
    assert all(a.end <= b.start for a, b in pairwise(order))  # by one clock, the worker's
    assert worked.start <= order[0].start
    assert order[-1].end <= worked.end


def test_an_error_is_told_without_the_callers_words(
    service: Service, collector: Collector, job: dict[str, Any]
) -> None:
    body = {"model": "line", "inputs": [[SECRET]]}
    assert httpx.post(f"{service.url}/predict", json=body, timeout=120).status_code == 422
    refused = eventually(
        lambda: [
            span
            for span in collector.named("POST /predict")
            if span.attributes.get("http.response.status_code") == 422
        ]
    )
    assert not refused.failed  # the caller's fault, not the server's
    httpx.get(f"{service.url}/health/live", timeout=120)
    httpx.get(f"{service.url}/models", timeout=120)
    wait_until(lambda: collector.named("GET /models"))
    assert SECRET not in repr(collector.spans)
    assert not [span for span in collector.spans if "health" in span.name]


def test_a_collector_that_is_away_is_told_once_and_harms_nobody(tmp_path: Path) -> None:
    away = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    with serving(tmp_path, "api", **away, **FAST) as service:

        def warnings() -> list[str]:
            bad = [line for line in lines(service) if line["level"] in ("warning", "error")]
            return [line["message"] for line in bad]

        for _ in range(2):
            assert httpx.get(f"{service.url}/models", timeout=120).status_code == 200
            wait_until(warnings)
        service.process.terminate()
        assert service.process.wait(PATIENCE) == 0
    assert warnings() == ["traces are not delivered: they are dropped while the collector is away"]
