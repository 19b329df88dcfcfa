"""Exports spans with the SDK: a thread sends batches over OTLP/HTTP from a bounded queue.

OpenTelemetry's variables set endpoint, headers, timeout, sampler, and sizes of batch and queue.
"""

import logging
from collections.abc import Sequence

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from core.release import release

log = structlog.stdlib.get_logger(__name__)


def provider_for(service: str) -> TracerProvider:
    """A provider of spans with a thread that exports them."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # `_Delivery` logs it once
    defaults = {"service.name": service, "service.version": release()}
    chosen = OTELResourceDetector().detect().attributes
    provider = TracerProvider(
        resource=Resource.create({**defaults, **chosen}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(_Delivery(OTLPSpanExporter())))
    return provider


class _Delivery(SpanExporter):
    """Logs once that the collector is unreachable, and once that it works again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._is_away:
            log.warning("traces are not delivered: they are dropped while the collector is away")
        elif self._is_away and not failed:
            log.info("traces are delivered again")
        self._is_away = failed
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
