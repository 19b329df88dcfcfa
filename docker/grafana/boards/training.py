"""Jobs, workers, and the devices that they train on."""

from grafana_foundation_sdk.models.dashboard import Dashboard, VariableSort

from boards.panels import GREEN, RED, YELLOW, board, limits, lines, number, variable
from boards.queries import MODEL, quantile

EPOCH = f"credence_train_epoch_seconds_bucket{{{MODEL}}}"
JOB = "credence_train_job_seconds"


def last_hour(q: float) -> str:
    """A quantile over jobs that ended in the last hour. Shorter times have too few jobs."""
    return f"histogram_quantile({q}, sum by (kind, le) (increase({JOB}_bucket[1h])))"


NUMBERS = [
    number(
        "Queue",
        "Jobs and chunks of offline predictions that wait for a worker.",
        "none",
        "credence_job_queue_length:max",
    ),
    number(
        "Oldest",
        "Waiting time of the first job in the queue. Alert at 30 minutes if the queue grows.",
        "s",
        "credence_job_queue_oldest_seconds:max",
        limits((300, YELLOW), (1800, RED)),
    ),
    number("Running", "Jobs and chunks that a worker runs.", "none", "credence_jobs_claimed:max"),
    number(
        "Workers",
        "Workers that sent a heartbeat in the last 30 seconds.",
        "none",
        "credence_workers_live:sum",
        limits((0, RED), (1, GREEN)),
    ),
    number(
        "Lost",
        "Running jobs whose lease has ended. They are queued again within seconds.",
        "none",
        "credence_jobs_lease_ended:max",
        limits((1, RED)),
    ),
    number(
        "Silence",
        "Longest time since a running job reported progress. Alert at 10 minutes.",
        "s",
        "credence_job_silent_seconds:max",
        limits((120, YELLOW), (600, RED)),
    ),
]

JOBS = [
    lines(
        "Unfinished jobs",
        "Jobs that wait or run, without chunks.",
        "none",
        {"{{status}}": 'status:credence_jobs:max{status=~"queued|running|cancelling"}'},
        stacked=True,
    ),
    lines(
        "Finished in an hour",
        "Attempts at jobs and chunks that ended in the last hour, by kind and outcome.",
        "none",
        {"{{kind}} {{status}}": f"sum by (kind, status) (increase({JOB}_count[1h]))"},
    ),
    lines(
        "Duration",
        "Median and 95th percentile of attempts that ended in the last hour, by kind.",
        "s",
        {"p50 · {{kind}}": last_hour(0.5), "p95 · {{kind}}": last_hour(0.95)},
        log=True,
    ),
]

FITS = [
    lines(
        "Loss",
        "Negative ELBO of the running job, nats per row. It jumps where a new stage begins.",
        "none",
        {"{{model}}": f"avg by (model) (credence_train_nelbo{{{MODEL}}})"},
    ),
    lines(
        "KL divergence",
        "From the prior to the posterior of the running job, nats per row.",
        "none",
        {"{{model}}": f"avg by (model) (credence_train_kl{{{MODEL}}})"},
    ),
    lines(
        "Epoch",
        "Median and 95th percentile of an epoch's duration.",
        "s",
        {
            "p50 · {{model}}": quantile(0.5, EPOCH, "model"),
            "p95 · {{model}}": quantile(0.95, EPOCH, "model"),
        },
        log=True,
    ),
]

WORKERS = [
    lines(
        "Workers by device",
        "Live and known workers. They differ for 15 minutes after a worker stops.",
        "none",
        {
            "live · {{device}}": "max by (device) (credence_workers_live)",
            "known · {{device}}": "max by (device) (credence_workers_known)",
        },
        dashed="^known",
    ),
    lines(
        "Last heartbeat",
        "Time since the last heartbeat of each worker. Alert at a minute.",
        "s",
        {"{{instance}}": "time() - credence_worker_heartbeat_timestamp_seconds"},
        thresholds=limits((60, RED)),
    ),
    lines(
        "Memory",
        "Resident memory of each worker.",
        "bytes",
        {"{{instance}}": 'process_resident_memory_bytes{job="worker"}'},
    ),
    lines(
        "Processor",
        "Busy cores of each worker.",
        "none",
        {"{{instance}}": 'rate(process_cpu_seconds_total{job="worker"}[$__rate_interval])'},
    ),
]

GPUS = [
    lines(
        "GPU utilisation",
        "Share of time in which a kernel ran.",
        "percent",
        {"{{Hostname}} GPU {{gpu}}": "DCGM_FI_DEV_GPU_UTIL"},
    ),
    lines(
        "GPU memory",
        "Used memory, and all of it (dashed).",
        "mbytes",
        {
            "used · {{Hostname}} GPU {{gpu}}": "DCGM_FI_DEV_FB_USED",
            "all · {{Hostname}} GPU {{gpu}}": "DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE",
        },
        dashed="^all",
    ),
    lines(
        "GPU memory of processes",
        "Memory of torch in API and workers: in tensors, and reserved (dashed).",
        "bytes",
        {
            "tensors · {{job}} {{instance}} {{device}}": "credence_device_memory_allocated_bytes",
            "reserved · {{job}} {{instance}} {{device}}": "credence_device_memory_reserved_bytes",
        },
        dashed="^reserved",
    ),
    lines(
        "GPU power and temperature",
        "Watts, and degrees Celsius.",
        "none",
        {
            "W · {{Hostname}} GPU {{gpu}}": "DCGM_FI_DEV_POWER_USAGE",
            "°C · {{Hostname}} GPU {{gpu}}": "DCGM_FI_DEV_GPU_TEMP",
        },
    ),
]


def build() -> Dashboard:
    """The dashboard of the workers."""
    model = variable("model", "credence_train_epoch_seconds_count", VariableSort.ALPHABETICAL_ASC)
    rows = {
        "": [NUMBERS],
        "Jobs": [JOBS],
        "Training of the chosen models": [FITS],
        "Workers": [WORKERS],
        "GPU": [GPUS],
    }
    return board("Training", "Jobs, workers, and their devices.", [model], rows)
