"""The worker's metrics for Prometheus, on their own port."""

import structlog
from prometheus_client import CollectorRegistry, Gauge, Histogram, start_http_server

from core.exceptions import InvalidSetting
from core.settings import Settings

log = structlog.get_logger()

_EPOCH_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
_JOB_BUCKETS = (1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10_800, 36_000, 86_400)


class WorkerMetrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.epoch_seconds = Histogram(
            "credence_train_epoch_seconds",
            "Duration of an epoch",
            ["model"],
            buckets=_EPOCH_BUCKETS,
            registry=registry,
        )
        self.job_seconds = Histogram(
            "credence_train_job_seconds",
            "Duration of one attempt at a job",
            ["kind", "status"],
            buckets=_JOB_BUCKETS,
            registry=registry,
        )
        self.nelbo = Gauge(
            "credence_train_nelbo",
            "Negative ELBO of the running job, nats per row",
            ["model"],
            registry=registry,
        )
        self.kl = Gauge(
            "credence_train_kl",
            "KL divergence of the running job, nats per row",
            ["model"],
            registry=registry,
        )
        self._heartbeat = Gauge(
            "credence_worker_heartbeat_timestamp_seconds",
            "Time of the worker's last heartbeat",
            registry=registry,
        )
        self.beat = self._heartbeat.set_to_current_time

    def remove(self, model: str) -> None:
        """Remove the gauges of a job that ended, because they are only for running jobs."""
        for gauge in (self.nelbo, self.kl):
            gauge.remove_by_labels({"model": model})


def serve_metrics(metrics: WorkerMetrics, settings: Settings) -> int:
    """Start serving the metrics, and return the port.

    If the default port is in use, log a warning and take a free one.

    Raises:
        InvalidSetting: the port was set explicitly and is in use.
    """
    wanted = settings.worker_metrics_port
    try:
        server, _ = start_http_server(wanted, registry=metrics.registry)
    except OSError as error:
        if "worker_metrics_port" in settings.model_fields_set:
            raise InvalidSetting(
                f"CREDENCE_WORKER_METRICS_PORT={wanted} is in use ({error.strerror}): "
                "give a free port, or 0 to take any"
            ) from error
        server, _ = start_http_server(0, registry=metrics.registry)
        log.warning("metrics port in use", wanted=wanted, taken=server.server_port)
    return int(server.server_port)
