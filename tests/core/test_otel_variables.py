"""OpenTelemetry's variables: tracing is on when a collector is named, and mistakes are refused."""

import pytest

from core.exceptions import InvalidSetting
from core.settings import load_settings
from core.telemetry.otel_variables import problems, wants_traces

COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        (COLLECTOR, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "true"}, False),
        (COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_a_collector_switches_traces_on(variables: dict[str, str], wanted: bool) -> None:
    assert wants_traces(variables) is wanted


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "https://collector:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "some", "parentbased_always_off"),
        ("OTEL_TRACES_SAMPLER_ARG", "10%", "0.1"),
        ("OTEL_TRACES_SAMPLER_ARG", "2", "1"),
    ],
)
def test_mistakes_are_named(name: str, wrong: str, right: str) -> None:
    given = COLLECTOR | {"OTEL_TRACES_SAMPLER": "traceidratio"}
    [found] = problems(given | {name: wrong})
    assert f"{name}={wrong}" in found
    assert list(problems(given | {name: right})) == []


def test_a_wrong_one_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere")
    with pytest.raises(InvalidSetting, match="OTEL_EXPORTER_OTLP_ENDPOINT=nowhere"):
        load_settings()
