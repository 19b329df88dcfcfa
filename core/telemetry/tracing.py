"""OpenTelemetry spans: one trace from a request through the queue to the end of its job.

Spans are exported only if OpenTelemetry's variables name a collector. Otherwise the SDK is not
loaded, and these functions do nothing. A span holds names, numbers and the class of an error. It
does not hold the error's message, which may quote a caller's data.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from core.settings import traces_wanted
from models.exceptions import Stopped

FLUSH_SECONDS = 1.0  # the longest that an unreachable collector may delay the process's end

Attribute = str | int | float | bool
_traceparent = TraceContextTextMapPropagator()


def start_tracing(service: Literal["credence-api", "credence-worker"]) -> None:
    """Start to export spans; call it once per process. `OTEL_SERVICE_NAME` overrides `service`."""
    if not traces_wanted():
        return
    from core.telemetry.trace_export import provider_for  # noqa: PLC0415 (takes 0.1 s)

    trace.set_tracer_provider(provider_for(service))


def is_tracing() -> bool:
    """Whether this process records spans."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def flush_traces(seconds: float = FLUSH_SECONDS) -> None:
    """Export the remaining spans, and wait at most `seconds` for it."""
    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        thread = threading.Thread(target=flush, name="flush-traces", daemon=True)
        thread.start()
        thread.join(seconds)


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Span]:
    """A span around the block, as a child of the present one."""
    with (
        _tracer().start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as present,
        _errors_marked(present),
    ):
        yield present


@contextmanager
def continued(name: str, traceparent: str | None, **attributes: Attribute) -> Iterator[Span]:
    """A span that continues another process's trace, or begins a new one without `traceparent`."""
    with (
        _tracer().start_as_current_span(
            name,
            context=_traceparent.extract({"traceparent": traceparent} if traceparent else {}),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as present,
        _errors_marked(present),
    ):
        yield present


def record(name: str, start_ns: int, end_ns: int) -> None:
    """Add a finished child to the present span. Times are nanoseconds since the epoch."""
    _tracer().start_span(name, start_time=start_ns).end(end_ns)


def event(name: str, **attributes: Attribute) -> None:
    """Add an event to the present span."""
    trace.get_current_span().add_event(name, attributes)


def fail(code: str) -> None:
    """Mark the present span as failed with an error of this kind."""
    _fail(trace.get_current_span(), code)


def current_traceparent() -> str | None:
    """The present span as W3C's `traceparent`, for another process; None without a span."""
    carrier: dict[str, str] = {}
    _traceparent.inject(carrier)
    return carrier.get("traceparent")


def _tracer() -> trace.Tracer:
    return trace.get_tracer("credence")


@contextmanager
def _errors_marked(present: Span) -> Iterator[None]:
    try:
        yield
    except Stopped:  # not an error
        raise
    except Exception as error:
        _fail(present, type(error).__name__)
        raise


def _fail(present: Span, code: str) -> None:
    present.set_attribute("error.type", code)
    present.set_status(StatusCode.ERROR)
