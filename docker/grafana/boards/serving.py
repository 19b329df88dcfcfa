"""Predictions: their rate, latency and errors, how they are batched, and the queue."""

from grafana_foundation_sdk.models.dashboard import Dashboard, VariableSort

from boards.panels import (
    GREEN,
    RED,
    YELLOW,
    board,
    buckets,
    limits,
    lines,
    number,
    series,
    variable,
)
from boards.queries import MODEL, increase, mean, quantile, rate, ratio

REQUESTS = f"credence_predict_requests_total{{{MODEL}}}"
FAILED = f'credence_predict_requests_total{{{MODEL}, status=~"5..", status!="503"}}'
REFUSED = f'credence_predict_requests_total{{{MODEL}, status=~"429|503"}}'
LATENCY = f'credence_predict_latency_seconds_bucket{{{MODEL}, samples=~"$samples"}}'
OBJECTIVE = "samples:credence_predict_latency_seconds:objective"

NUMBERS = [
    number(
        "Replicas",
        "Replicas of the API that answer Prometheus.",
        "none",
        'count(up{job="api"} == 1) or vector(0)',
        limits((0, RED), (1, GREEN)),
    ),
    number(
        "Requests",
        "Prediction requests per second, including those refused or failed.",
        "reqps",
        f"{rate(REQUESTS)} or vector(0)",
    ),
    number(
        "Errors",
        "Share of requests that ended with a 5xx other than 503. Alert at 1 %.",
        "percentunit",
        ratio(FAILED, REQUESTS),
        limits((0.001, YELLOW), (0.01, RED)),
    ),
    number(
        "Refused",
        "Share of requests refused (429, 503): the queue is full or too slow. Alert at 5 %.",
        "percentunit",
        ratio(REFUSED, REQUESTS),
        limits((0.01, YELLOW), (0.05, RED)),
    ),
    number(
        "Latency p99",
        "99th percentile of the answered requests of the chosen sample counts.",
        "s",
        quantile(0.99, LATENCY),
    ),
    number(
        "Alerts",
        "Alerts that fire now. docs/operations.md has a section for each.",
        "none",
        'count(ALERTS{alertstate="firing"}) or vector(0)',
        limits((1, RED)),
    ),
]

REQUEST_RATES = [
    lines(
        "Requests by status",
        "Per second. 4xx: errors of callers; 499: callers that hung up; 503: refusals.",
        "reqps",
        {"{{status}}": rate(REQUESTS, "status")},
        stacked=True,
    ),
    lines(
        "Requests by model",
        "Per second. Requests that name no model have an empty name.",
        "reqps",
        {"{{model}}": rate(REQUESTS, "model")},
        stacked=True,
    ),
    lines(
        "Work done",
        "Rows predicted per second, and rows × samples computed per second.",
        "short",
        {
            "rows": rate("credence_predict_rows_total"),
            "rows × samples": rate("credence_predict_batch_work_sum"),
        },
        log=True,
    ),
]

LATENCIES = [
    buckets(
        "Latency",
        "Requests by latency, from the first byte of the request to the response.",
        "s",
        increase(LATENCY, "le"),
    ),
    lines(
        "Percentiles by samples",
        "50th and 99th percentile by sample count; counts are rounded up to a step.",
        "s",
        {
            "p50 · {{samples}}": quantile(0.5, LATENCY, "samples"),
            "p99 · {{samples}}": quantile(0.99, LATENCY, "samples"),
        },
        log=True,
    ),
    lines(
        "p99 ÷ objective",
        "Above 1, p99 exceeds its objective (docker/prometheus/rules/recording.yml).",
        "none",
        {"{{samples}} samples": f"{quantile(0.99, LATENCY, 'samples')} / on (samples) {OBJECTIVE}"},
        thresholds=limits((1, RED)),
    ),
]

STAGES = [
    lines(
        "Time by stage",
        "Mean time per stage. Long queue: load. Long decode or encode: large bodies.",
        "s",
        {"{{stage}}": mean("credence_predict_stage_seconds", "stage")},
        stacked=True,
    ),
    lines(
        "Stages p99",
        "99th percentile of each stage.",
        "s",
        {"{{stage}}": quantile(0.99, "credence_predict_stage_seconds_bucket", "stage")},
        log=True,
    ),
    lines(
        "Requests per batch",
        "1 when idle. A busy engine computes more requests of the same kind at once.",
        "none",
        {
            "mean": mean("credence_predict_batch_requests"),
            "p95": quantile(0.95, "credence_predict_batch_requests_bucket"),
        },
    ),
    buckets(
        "Work per batch",
        "Batches by rows × samples.",
        "short",
        increase("credence_predict_batch_work_bucket", "le"),
    ),
]

QUEUE = [
    lines(
        "Queued work",
        "Rows × samples that wait or run, by replica. Limit: CREDENCE_MAX_QUEUED_WORK.",
        "short",
        {"{{instance}}": "credence_predict_queued_work"},
    ),
    lines(
        "Queued requests",
        "Requests that wait or run, by replica. Limit: 4096.",
        "short",
        {"{{instance}}": "credence_predict_queued_requests"},
        thresholds=limits((4096, RED)),
    ),
    lines(
        "Engine without progress",
        "Time since queued work last made progress. Alert at 2 minutes.",
        "s",
        {"{{instance}}": "credence_engine_stalled_seconds"},
        thresholds=limits((120, RED)),
    ),
]

MODELS = [
    series(
        "Model versions in memory",
        "Each version, and how many replicas hold it.",
        f"count by (model, version) (credence_model_out_of_distribution_ratio{{{MODEL}}})",
    ),
    lines(
        "Models in memory",
        "Versions in memory, by replica.",
        "none",
        {"{{instance}}": "credence_models_loaded"},
    ),
    lines(
        "Memory of models",
        "Bytes of posteriors, by replica. Limit: CREDENCE_MODEL_CACHE_BYTES.",
        "bytes",
        {"{{instance}}": "credence_models_loaded_bytes"},
    ),
]

PROCESS = [
    lines(
        "Memory",
        "Resident memory of each replica.",
        "bytes",
        {"{{instance}}": 'process_resident_memory_bytes{job="api"}'},
    ),
    lines(
        "Processor",
        "Busy cores of each replica.",
        "none",
        {"{{instance}}": 'rate(process_cpu_seconds_total{job="api"}[$__rate_interval])'},
    ),
    lines(
        "Free disk",
        "Free share of the data directory's disk. Alert below 10 %.",
        "percentunit",
        {"{{job}} {{instance}}": "credence_disk_free_bytes / credence_disk_size_bytes"},
    ),
]


def build() -> Dashboard:
    """The dashboard of the API."""
    variables = [
        variable("model", "credence_predict_requests_total", VariableSort.ALPHABETICAL_ASC),
        variable("samples", "credence_predict_latency_seconds_count", VariableSort.NUMERICAL_ASC),
    ]
    rows = {
        "": [NUMBERS],
        "Requests": [REQUEST_RATES],
        "Latency of the chosen sample counts": [LATENCIES],
        "Engine, all models": [STAGES, QUEUE],
        "Models in memory, and the process": [MODELS, PROCESS],
    }
    return board("Serving", "Predictions: rate, latency, errors, batches.", variables, rows)
