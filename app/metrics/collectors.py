"""What /metrics reads anew at each scrape: the database, the loaded models, the queue."""

from collections.abc import Callable, Iterator, Sequence

import structlog
from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.metrics.bounded_query import BoundedQuery
from app.serving.admission import Admission
from app.serving.engine import Engine
from app.serving.model_cache import LoadedModel
from core.exceptions import Unavailable
from core.jobs.backlog import Backlog
from models.config import FALSE_ALARMS

log = structlog.stdlib.get_logger(__name__)


class BacklogCollector(Collector):
    """Jobs and workers as the database has them; while it is away, nothing but its own gauge."""

    def __init__(self, read: Callable[[], Backlog]) -> None:
        self._inquiry = BoundedQuery(read)

    def describe(self) -> list[Metric]:
        return [GaugeMetricFamily("credence_database_up", "")]

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("credence_database_up", "1 if the database answers, else 0")
        try:
            families = _families(self._inquiry.answer())
            up.add_metric([], 1)
        except (Unavailable, TimeoutError) as error:
            log.warning("jobs are not counted in /metrics", reason=str(error) or "no answer")
            families = []
            up.add_metric([], 0)
        yield from (up, *families)


def _families(backlog: Backlog) -> list[Metric]:
    """The same numbers from every replica: take the maximum over them, not the sum."""
    jobs = GaugeMetricFamily("credence_jobs", "Jobs by status", labels=["status"])
    for status, count in backlog.jobs.items():
        jobs.add_metric([status], count)
    live = GaugeMetricFamily("credence_workers_live", "Workers that beat", labels=["device"])
    known = GaugeMetricFamily("credence_workers_known", "And those missed", labels=["device"])
    for family, workers in ((live, backlog.live_workers), (known, backlog.known_workers)):
        for device, count in workers.items():
            family.add_metric([device], count)
    return [
        jobs,
        live,
        known,
        _gauge("credence_job_queue_length", "Jobs and chunks that wait", backlog.queued),
        _gauge(
            "credence_job_queue_oldest_seconds",
            "Since the first in the queue was queued; 0 if none waits",
            backlog.oldest_seconds,
        ),
        _gauge("credence_jobs_claimed", "Jobs and chunks that a worker has", backlog.claimed),
        _gauge(
            "credence_jobs_lease_ended",
            "Claimed ones that their worker no longer holds, not yet taken back",
            backlog.lease_ended,
        ),
        _gauge(
            "credence_job_silent_seconds",
            "Longest time since the last event of a claimed one; 0 if none is claimed",
            backlog.silent_seconds,
        ),
    ]


def _gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, value=value)


class ModelsCollector(Collector):
    """The models in memory, and what each should show if its inputs are like those of training."""

    def __init__(self, loaded: Callable[[], Sequence[LoadedModel]]) -> None:
        self._loaded = loaded

    def describe(self) -> list[Metric]:
        return [GaugeMetricFamily("credence_models_loaded", "")]

    def collect(self) -> Iterator[Metric]:
        loaded = self._loaded()
        num_bytes = sum(entry.model.num_bytes for entry in loaded)
        yield _gauge("credence_models_loaded", "Model versions in memory", len(loaded))
        yield _gauge("credence_models_loaded_bytes", "Memory that they take", num_bytes)
        share = GaugeMetricFamily(
            "credence_model_epistemic_share",
            "Mean epistemic ÷ total variance on held-out rows, when the version was trained",
            labels=["model", "version"],
        )
        strange = GaugeMetricFamily(
            "credence_model_out_of_distribution_ratio",
            "Share of rows like those of training that is flagged as out of distribution",
            labels=["model", "version"],
        )
        for entry in loaded:
            labels = [entry.version.model, str(entry.version.version)]
            full = entry.model.variant(0.0)
            metrics, detector = full.metrics, full.detector
            # None of forecasts that diverge, absent of texts
            if metrics.get("epistemic_share") is not None:
                share.add_metric(labels, metrics["epistemic_share"])
            strange.add_metric(labels, detector.false_alarm_rate if detector else FALSE_ALARMS)
        yield from (share, strange)


def watch_queue(registry: CollectorRegistry, admission: Admission, engine: Engine) -> None:
    """Gauges of what waits for the engine, and whether it gets on."""
    gauges: list[tuple[str, str, Callable[[], float]]] = [
        (
            "credence_predict_queued_work",
            "Rows × samples that wait or run",
            lambda: admission.queued_work,
        ),
        (
            "credence_predict_queued_requests",
            "Requests that wait or run",
            lambda: admission.queued_requests,
        ),
        (
            "credence_engine_stalled_seconds",
            "Since when work makes no progress; 0 without work, +Inf once the engine is dead",
            engine.stalled_seconds,
        ),
    ]
    for name, documentation, read in gauges:
        Gauge(name, documentation, registry=registry).set_function(read)
