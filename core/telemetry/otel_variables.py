"""The OpenTelemetry variables that this service reads. The SDK reads the others."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
SAMPLERS = ("always_on", "always_off", "traceidratio")
RATIO = "OTEL_TRACES_SAMPLER_ARG"


def wants_traces(environ: Mapping[str, str]) -> bool:
    """Whether a collector is set, and tracing is not switched off."""
    off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    none = environ.get("OTEL_TRACES_EXPORTER", "").lower() == "none"
    return any(environ.get(name) for name in ENDPOINTS) and not (off or none)


def problems(environ: Mapping[str, str]) -> Iterator[str]:
    """Wrong values, for which the SDK only warns or fails at the first export."""
    if not wants_traces(environ):
        return
    for name in ENDPOINTS:
        if (value := environ.get(name)) and not _is_url(value):
            yield f"{name}={value}: give the collector's address, such as http://collector:4318"
    for name in PROTOCOLS:
        if (value := environ.get(name)) and value != "http/protobuf":
            yield f"{name}={value}: only http/protobuf is supported, on the collector's port 4318"
    sampler = (environ.get("OTEL_TRACES_SAMPLER") or SAMPLERS[0]).lower()
    if sampler.removeprefix("parentbased_") not in SAMPLERS:
        known = ", ".join(SAMPLERS)
        yield f"OTEL_TRACES_SAMPLER={sampler}: give {known}, each also after parentbased_"
    if sampler.endswith("traceidratio") and not _is_share(environ.get(RATIO) or "1"):
        yield f"{RATIO}={environ[RATIO]}: give the share of traces to keep, from 0 to 1"


def _is_url(value: str) -> bool:
    url = urlsplit(value)
    return url.scheme in ("http", "https") and bool(url.hostname)


def _is_share(value: str) -> bool:
    try:
        return 0 <= float(value) <= 1
    except ValueError:
        return False
