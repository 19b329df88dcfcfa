"""Jobs, workers, and what they train on."""

from boards.panels import (
    GREEN,
    RED,
    YELLOW,
    Json,
    Query,
    dashboard,
    limits,
    row,
    stat,
    timeseries,
    variable,
)
from boards.queries import MODEL, quantile

EPOCH = f"credence_train_epoch_seconds_bucket{{{MODEL}}}"
JOB = "credence_train_job_seconds"


def last_hour(q: float) -> str:
    """A quantile of what ended in the last hour: jobs are too rare for a shorter time."""
    return f"histogram_quantile({q}, sum by (kind, le) (increase({JOB}_bucket[1h])))"


NUMBERS = [
    stat(
        "Queue",
        "Jobs, and chunks of offline predictions, that wait for a worker.",
        "credence_job_queue_length:max",
        "none",
    ),
    stat(
        "Oldest",
        "How long the first in the queue has waited; alert at 30 minutes if the queue grows.",
        "credence_job_queue_oldest_seconds:max",
        "s",
        limits((300, YELLOW), (1800, RED)),
    ),
    stat("Running", "Jobs and chunks that a worker has.", "credence_jobs_claimed:max", "none"),
    stat(
        "Workers",
        "Workers heard of in the last 30 seconds.",
        "credence_workers_live:sum",
        "none",
        limits((0, RED), (1, GREEN)),
    ),
    stat(
        "Lost",
        "Running jobs whose worker no longer holds them; taken back within seconds.",
        "credence_jobs_lease_ended:max",
        "none",
        limits((1, RED)),
    ),
    stat(
        "Silence",
        "Longest time since a running job told something; alert at 10 minutes.",
        "credence_job_silent_seconds:max",
        "s",
        limits((120, YELLOW), (600, RED)),
    ),
]

JOBS = [
    timeseries(
        "Unfinished jobs",
        "Jobs that wait or run; chunks are no jobs of their own.",
        [
            Query(
                'status:credence_jobs:max{status=~"queued|running|cancelling"}',
                "{{status}}",
            )
        ],
        "none",
        stacked=True,
    ),
    timeseries(
        "Finished in an hour",
        "Attempts at jobs and chunks that ended in the last hour, by kind and outcome.",
        [Query(f"sum by (kind, status) (increase({JOB}_count[1h]))", "{{kind}} {{status}}")],
        "none",
    ),
    timeseries(
        "Duration",
        "Median and 95th percentile of attempts that ended in the last hour, by kind.",
        [Query(last_hour(0.5), "p50 · {{kind}}"), Query(last_hour(0.95), "p95 · {{kind}}")],
        "s",
        log=True,
    ),
]

FITS = [
    timeseries(
        "Loss",
        "Negative ELBO of the running job in nats per row; it falls, and jumps "
        "where a new stage (pruning, refit) begins.",
        [Query(f"avg by (model) (credence_train_nelbo{{{MODEL}}})", "{{model}}")],
        "none",
    ),
    timeseries(
        "KL divergence",
        "From prior to posterior, of the running job, in nats per row.",
        [Query(f"avg by (model) (credence_train_kl{{{MODEL}}})", "{{model}}")],
        "none",
    ),
    timeseries(
        "Epoch",
        "Median and 95th percentile of an epoch's duration.",
        [
            Query(quantile(0.5, EPOCH, "model"), "p50 · {{model}}"),
            Query(quantile(0.95, EPOCH, "model"), "p95 · {{model}}"),
        ],
        "s",
        log=True,
    ),
]

WORKERS = [
    timeseries(
        "Workers by device",
        "Live ones, and those that are missed (known): they differ "
        "for 15 minutes after a worker has vanished.",
        [
            Query("max by (device) (credence_workers_live)", "live · {{device}}"),
            Query("max by (device) (credence_workers_known)", "known · {{device}}"),
        ],
        "none",
        dashed="^known",
    ),
    timeseries(
        "Last beat",
        "Since each worker last showed that it lives; alert at a minute.",
        [Query("time() - credence_worker_heartbeat_timestamp_seconds", "{{instance}}")],
        "s",
        thresholds=limits((60, RED)),
    ),
    timeseries(
        "Memory",
        "Resident memory of each worker.",
        [Query('process_resident_memory_bytes{job="worker"}', "{{instance}}")],
        "bytes",
    ),
    timeseries(
        "Processor",
        "Cores that each worker keeps busy.",
        [
            Query(
                'rate(process_cpu_seconds_total{job="worker"}[$__rate_interval])',
                "{{instance}}",
            )
        ],
        "none",
    ),
]

GPUS = [
    timeseries(
        "GPU utilisation",
        "Share of time in which a kernel ran.",
        [Query("DCGM_FI_DEV_GPU_UTIL", "{{Hostname}} GPU {{gpu}}")],
        "percent",
    ),
    timeseries(
        "GPU memory",
        "In use, and what there is: used and free.",
        [
            Query("DCGM_FI_DEV_FB_USED", "used · {{Hostname}} GPU {{gpu}}"),
            Query(
                "DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE",
                "all · {{Hostname}} GPU {{gpu}}",
            ),
        ],
        "mbytes",
        dashed="^all",
    ),
    timeseries(
        "GPU memory of processes",
        "What torch holds in API and workers: in tensors, and reserved for more.",
        [
            Query(
                "credence_device_memory_allocated_bytes",
                "tensors · {{job}} {{instance}} {{device}}",
            ),
            Query(
                "credence_device_memory_reserved_bytes",
                "reserved · {{job}} {{instance}} {{device}}",
            ),
        ],
        "bytes",
        dashed="^reserved",
    ),
    timeseries(
        "GPU power and temperature",
        "Watts, and degrees Celsius.",
        [
            Query("DCGM_FI_DEV_POWER_USAGE", "W · {{Hostname}} GPU {{gpu}}"),
            Query("DCGM_FI_DEV_GPU_TEMP", "°C · {{Hostname}} GPU {{gpu}}"),
        ],
        "none",
    ),
]


def build() -> Json:
    """The dashboard."""
    rows = [
        NUMBERS,
        [row("Jobs")],
        JOBS,
        [row("Training of the chosen models")],
        FITS,
        [row("Workers")],
        WORKERS,
        [row("GPU")],
        GPUS,
    ]
    return dashboard(
        "credence-training",
        "Training",
        "Jobs, workers, and what they train on.",
        [variable("model", "Model", "credence_train_epoch_seconds_count")],
        rows,
    )
