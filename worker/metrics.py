"""The worker's metrics for Prometheus, on their own port."""

import errno
import socket

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from core.access.hosts import AllowedHosts, split
from core.exceptions import InvalidSetting
from core.settings import Settings
from core.webhooks.deliveries import Outcome
from worker.metrics_server import MetricsServer

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
        self.webhook_deliveries = Counter(
            "credence_webhook_deliveries",
            "Tries to deliver an event to a webhook, by how they ended",
            ["outcome"],
            registry=registry,
        )
        for outcome in Outcome:  # so that the first failure is an increase
            self.webhook_deliveries.labels(outcome.value)
        self.schedule_runs = Counter(
            "credence_schedule_runs",
            "Runs of schedules by outcome",
            ["outcome"],
            registry=registry,
        )
        for decision in ("passed", "refused", "unchanged", "failed", "cancelled"):
            self.schedule_runs.labels(decision)
        self._heartbeat = Gauge(
            "credence_worker_heartbeat_timestamp_seconds",
            "Time of the worker's last heartbeat",
            registry=registry,
        )
        self.beat = self._heartbeat.set_to_current_time

    def models(self) -> set[str]:
        """The models with an epoch since this worker's start."""
        families = self.epoch_seconds.collect()
        return {sample.labels["model"] for family in families for sample in family.samples}

    def running(self) -> set[str]:
        """The models of running jobs. Their gauges appear before their first epoch is counted."""
        return {sample.labels["model"] for sample in next(iter(self.nelbo.collect())).samples}

    def forget(self, model: str) -> None:
        """Remove all metrics of a model that was deleted."""
        self.remove(model)
        self.epoch_seconds.remove_by_labels({"model": model})

    def remove(self, model: str) -> None:
        """Remove the gauges of a job that ended, because they are only for running jobs."""
        for gauge in (self.nelbo, self.kl):
            gauge.remove_by_labels({"model": model})


def serve_metrics(metrics: WorkerMetrics, settings: Settings) -> int:
    """Start serving the metrics, and return the port.

    If the default port is in use, log a warning and take a free one.

    Raises:
        InvalidSetting: the address is not of this machine, or the port was set explicitly and is
            in use.
    """
    host, wanted = settings.worker_metrics_host, settings.worker_metrics_port
    try:
        listener = _listen(host, wanted)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise InvalidSetting(
                f"CREDENCE_WORKER_METRICS_HOST={host}: {error.strerror}: give an address of this "
                "machine, such as 127.0.0.1, or 0.0.0.0 for all"
            ) from error
        if "worker_metrics_port" in settings.model_fields_set:
            raise InvalidSetting(
                f"CREDENCE_WORKER_METRICS_PORT={wanted} is in use ({error.strerror}): "
                "give a free port, or 0 to take any"
            ) from error
        listener = _listen(host, 0)
        log.warning("metrics port in use", wanted=wanted, taken=listener.getsockname()[1])
    hosts = AllowedHosts(split(settings.allowed_hosts), host)
    server = MetricsServer(listener, metrics.registry, hosts)
    server.start()
    return server.port


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)
