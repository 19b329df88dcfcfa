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
        ({"OTEL_TRACES_SAMPLER": "always_on"}, False),
    ],
)
def test_a_collector_switches_traces_on(variables: dict[str, str], wanted: bool) -> None:
    assert wants_traces(variables) is wanted


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "collector:4318: give the collector's"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "PROTOCOL=grpc: only http/protobuf"),
        ({"OTEL_TRACES_SAMPLER": "some"}, "OTEL_TRACES_SAMPLER=some: give always_on"),
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10%"},
            "OTEL_TRACES_SAMPLER_ARG=10%: give the share",
        ),
        (
            {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
            "OTEL_TRACES_SAMPLER_ARG=2: give the share",
        ),
    ],
)
def test_mistakes_are_named(variables: dict[str, str], problem: str) -> None:
    [found] = problems(COLLECTOR | variables)
    assert problem in found


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_TRACES_SAMPLER": "parentbased_always_off"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"},
        {"OTEL_TRACES_SAMPLER": "traceidratio"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
    ],
)
def test_what_the_standard_allows_is_fine(variables: dict[str, str]) -> None:
    assert list(problems(COLLECTOR | variables)) == []


def test_a_wrong_one_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere")
    with pytest.raises(InvalidSetting, match="OTEL_EXPORTER_OTLP_ENDPOINT=nowhere"):
        load_settings()
