"""A collector: takes OTLP over HTTP, as the standard has it, and keeps the spans."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


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
    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def within(self, trace_id: str, name: str) -> list[Span]:
        return [span for span in self.named(name) if span.trace_id == trace_id]

    def children(self, parent: Span) -> dict[str, Span]:
        return {span.name: span for span in self.spans if span.parent_id == parent.span_id}


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.spans.extend(read(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
