"""Predictions: how many, how fast, how they are batched, what waits."""

from boards.panels import (
    GREEN,
    RED,
    YELLOW,
    Json,
    Query,
    dashboard,
    heatmap,
    limits,
    row,
    stat,
    table,
    timeseries,
    variable,
)
from boards.queries import MODEL, increase, mean, quantile, rate, ratio

REQUESTS = f"credence_predict_requests_total{{{MODEL}}}"
FAILED = f'credence_predict_requests_total{{{MODEL}, status=~"5..", status!="503"}}'
REFUSED = f'credence_predict_requests_total{{{MODEL}, status=~"429|503"}}'
LATENCY = f'credence_predict_latency_seconds_bucket{{{MODEL}, samples=~"$samples"}}'
OBJECTIVE = "samples:credence_predict_latency_seconds:objective"

NUMBERS = [
    stat(
        "Replicas",
        "Replicas of the API that answer Prometheus.",
        'count(up{job="api"} == 1) or vector(0)',
        "none",
        limits((0, RED), (1, GREEN)),
    ),
    stat(
        "Requests",
        "Predictions asked for per second, refused and failed ones included.",
        f"{rate(REQUESTS)} or vector(0)",
        "reqps",
    ),
    stat(
        "Errors",
        "Share that ended with a 5xx other than 503; alert at 1 %.",
        ratio(FAILED, REQUESTS),
        "percentunit",
        limits((0.001, YELLOW), (0.01, RED)),
    ),
    stat(
        "Refused",
        "Share refused because too much waits or a deadline cannot be met "
        "(429, 503); alert at 5 %.",
        ratio(REFUSED, REQUESTS),
        "percentunit",
        limits((0.01, YELLOW), (0.05, RED)),
    ),
    stat(
        "Latency p99",
        "99th percentile of the answered requests of the chosen sample counts.",
        quantile(0.99, LATENCY),
        "s",
    ),
    stat(
        "Alerts",
        "Alerts that fire now; docs/operations.md has a section for each.",
        'count(ALERTS{alertstate="firing"}) or vector(0)',
        "none",
        limits((1, RED)),
    ),
]

ASKED = [
    timeseries(
        "Requests by status",
        "Per second. 4xx are the callers' mistakes, 499 callers who went away, 503 refusals.",
        [Query(rate(REQUESTS, "status"), "{{status}}")],
        "reqps",
        stacked=True,
    ),
    timeseries(
        "Requests by model",
        "Per second; without a name: those that name no model.",
        [Query(rate(REQUESTS, "model"), "{{model}}")],
        "reqps",
        stacked=True,
    ),
    timeseries(
        "Work done",
        "Rows predicted, and rows × samples computed, per second.",
        [
            Query(rate("credence_predict_rows_total"), "rows"),
            Query(rate("credence_predict_batch_work_sum"), "rows × samples"),
        ],
        "short",
        log=True,
    ),
]

LATENCIES = [
    heatmap(
        "Latency",
        "Requests by latency, from the first byte to the answer.",
        increase(LATENCY, "le"),
        "s",
    ),
    timeseries(
        "Percentiles by samples",
        "50th and 99th percentile by sample count, rounded up to a step.",
        [
            Query(quantile(0.5, LATENCY, "samples"), "p50 · {{samples}}"),
            Query(quantile(0.99, LATENCY, "samples"), "p99 · {{samples}}"),
        ],
        "s",
        log=True,
    ),
    timeseries(
        "p99 ÷ objective",
        "Above 1 the 99th percentile is over its objective "
        "(docker/prometheus/rules/recording.yml).",
        [
            Query(
                f"{quantile(0.99, LATENCY, 'samples')} / on (samples) {OBJECTIVE}",
                "{{samples}} samples",
            )
        ],
        "none",
        thresholds=limits((1, RED)),
    ),
]

STAGES = [
    timeseries(
        "Time by stage",
        "Mean time that a prediction spends in each stage: much queue "
        "means load, much decode or encode large bodies.",
        [Query(mean("credence_predict_stage_seconds", "stage"), "{{stage}}")],
        "s",
        stacked=True,
    ),
    timeseries(
        "Stages p99",
        "99th percentile of each stage.",
        [
            Query(
                quantile(0.99, "credence_predict_stage_seconds_bucket", "stage"),
                "{{stage}}",
            )
        ],
        "s",
        log=True,
    ),
    timeseries(
        "Requests per batch",
        "1 when idle; the busier the engine, the more equal questions it answers at once.",
        [
            Query(mean("credence_predict_batch_requests"), "mean"),
            Query(quantile(0.95, "credence_predict_batch_requests_bucket"), "p95"),
        ],
        "none",
    ),
    heatmap(
        "Work per batch",
        "Batches by rows × samples.",
        increase("credence_predict_batch_work_bucket", "le"),
        "short",
    ),
]

QUEUE = [
    timeseries(
        "Queued work",
        "Rows × samples that wait or run, by replica; CREDENCE_MAX_QUEUED_WORK is the most.",
        [Query("credence_predict_queued_work", "{{instance}}")],
        "short",
    ),
    timeseries(
        "Queued requests",
        "Requests that wait or run, by replica; 4096 are the most.",
        [Query("credence_predict_queued_requests", "{{instance}}")],
        "short",
        thresholds=limits((4096, RED)),
    ),
    timeseries(
        "Engine without progress",
        "Since when work makes none; alert at 2 minutes.",
        [Query("credence_engine_stalled_seconds", "{{instance}}")],
        "s",
        thresholds=limits((120, RED)),
    ),
]

MODELS = [
    table(
        "Model versions in memory",
        "And by how many replicas each is held.",
        f"count by (model, version) (credence_model_out_of_distribution_ratio{{{MODEL}}})",
    ),
    timeseries(
        "Models in memory",
        "Versions held, by replica.",
        [Query("credence_models_loaded", "{{instance}}")],
        "none",
    ),
    timeseries(
        "Memory of models",
        "Bytes of posteriors, by replica; CREDENCE_MODEL_CACHE_BYTES is the most.",
        [Query("credence_models_loaded_bytes", "{{instance}}")],
        "bytes",
    ),
]

PROCESS = [
    timeseries(
        "Memory",
        "Resident memory of each replica.",
        [Query('process_resident_memory_bytes{job="api"}', "{{instance}}")],
        "bytes",
    ),
    timeseries(
        "Processor",
        "Cores that each replica keeps busy.",
        [
            Query(
                'rate(process_cpu_seconds_total{job="api"}[$__rate_interval])',
                "{{instance}}",
            )
        ],
        "none",
    ),
    timeseries(
        "Free disk",
        "Share free of the data directory's disk; alert below 10 %.",
        [
            Query(
                "credence_disk_free_bytes / credence_disk_size_bytes",
                "{{job}} {{instance}}",
            )
        ],
        "percentunit",
    ),
]


def build() -> Json:
    """The dashboard."""
    rows = [
        NUMBERS,
        [row("Requests")],
        ASKED,
        [row("Latency of the chosen sample counts")],
        LATENCIES,
        [row("Engine, all models")],
        STAGES,
        QUEUE,
        [row("Models in memory and the process")],
        MODELS,
        PROCESS,
    ]
    return dashboard(
        "credence-serving",
        "Serving",
        "Predictions: rate, latency, errors, batches.",
        [
            variable("model", "Model", "credence_predict_requests_total"),
            variable("samples", "Samples", "credence_predict_latency_seconds_count"),
        ],
        rows,
    )
