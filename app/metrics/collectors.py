"""Metrics that are read at each scrape: of the database, the loaded models and the queue."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
from core.predictions.feedback import Rolling
from core.process.memory_budget import MemoryBudget
from models.config import FALSE_ALARMS
from models.evaluation.exact_tests import highest_mean, independent_rows
from models.variant import Variant

FEEDBACK = {  # by the end of the metric's name: the key in `Rolling.metrics`, and the help text
    "log_likelihood": (
        "log_likelihood",
        "Mean log likelihood of the labelled rows in the window, in nats",
    ),
    "expected_log_likelihood": (
        "expected_log_likelihood",
        "The same on held-out rows, when the version was trained",
    ),
    "calibration_error": (
        "calibration_error",
        "Classes: ECE; numbers: mean |coverage − level| over the levels",
    ),
    "window_rows": ("rows", "Labelled rows in the window"),
}
BY_LEVEL = {  # the same, for metrics with a value per level
    "coverage": (
        "coverage",
        "Share of the labelled rows in the window inside the central interval of the level",
    ),
    "conformal_coverage": (
        "conformal_coverage",
        "Share of the labelled rows in the window inside the conformal interval of the level",
    ),
    "adaptive_coverage": (
        "adaptive_coverage",
        "Share of the labelled rows in the window inside the adaptive interval of the level",
    ),
    "adapted_level": (
        "adapted_level",
        "Level at which adaptive intervals of the level are given now",
    ),
}
# By the end of the metric's name: the key of a level in the check of a window, and the help text.
COVERAGE = {
    "expected_coverage": (
        "held_out_coverage",
        "Share of the held-out rows inside the central interval, when the version was trained",
    ),
    "coverage_p_value": (
        "p_value",
        "Probability of as few labelled rows inside the interval, if nothing has changed",
    ),
}
Samples = Iterable[tuple[Sequence[str], float]]  # the values of the labels, and the gauge's

log = structlog.stdlib.get_logger(__name__)


class BacklogCollector(Collector):
    """Jobs and workers in the database. While it does not answer, only `credence_database_up`.

    Every replica exposes the same numbers: aggregate by the maximum, not the sum.
    """

    def __init__(self, read: Callable[[], Backlog]) -> None:
        self._query = BoundedQuery(read)

    def describe(self) -> list[Metric]:
        return [_gauge("credence_database_up", "")]

    def collect(self) -> Iterator[Metric]:
        families: list[Metric] = []
        try:
            families = _backlog(self._query.result())
        except (Unavailable, TimeoutError) as error:
            log.warning("jobs are not counted in /metrics", reason=str(error) or "no answer")
        up = "1 if the database answers, else 0"
        yield _gauge("credence_database_up", up, float(bool(families)))
        yield from families


def _backlog(backlog: Backlog) -> list[Metric]:
    return [
        _labelled("credence_jobs", "Jobs by status", ["status"], _by_label(backlog.jobs)),
        _labelled(
            "credence_workers_live",
            "Workers with a recent heartbeat",
            ["device"],
            _by_label(backlog.live_workers),
        ),
        _labelled(
            "credence_workers_known",
            "Workers with a heartbeat in the last 15 minutes",
            ["device"],
            _by_label(backlog.known_workers),
        ),
        _gauge("credence_job_queue_length", "Queued jobs and chunks", backlog.queued),
        _gauge(
            "credence_job_queue_oldest_seconds",
            "Time since the first job in the queue was queued; 0 if none is queued",
            backlog.oldest_seconds,
        ),
        _gauge("credence_jobs_claimed", "Jobs and chunks that workers have", backlog.claimed),
        _gauge(
            "credence_jobs_lease_ended",
            "Claimed jobs and chunks whose lease has ended, not yet queued again",
            backlog.lease_ended,
        ),
        _gauge(
            "credence_job_silent_seconds",
            "Longest time since the last event of a claimed job or chunk; 0 if none is claimed",
            backlog.silent_seconds,
        ),
        _gauge(
            "credence_webhook_backlog",
            "Deliveries of webhooks that are neither delivered nor given up",
            backlog.deliveries,
        ),
    ]


class FeedbackCollector(Collector):
    """Gauges of each version with recent labels; absent while the database does not answer.

    Every replica exposes the same numbers: aggregate by the maximum.
    """

    def __init__(self, read: Callable[[], Sequence[Rolling]]) -> None:
        self._query = BoundedQuery(read)

    def describe(self) -> list[Metric]:
        return list(_feedback([]))

    def collect(self) -> Iterator[Metric]:
        windows: Sequence[Rolling] = []
        try:
            windows = self._query.result()
        except (Unavailable, TimeoutError) as error:
            log.warning("feedback is missing in /metrics", reason=str(error) or "no answer")
        yield from _feedback(windows)


def _feedback(windows: Sequence[Rolling]) -> Iterator[Metric]:
    """The gauges. A metric that is null, such as of a forecast that diverges, has no sample."""
    for name, (key, documentation) in BY_LEVEL.items():
        yield _labelled(
            f"credence_feedback_{name}",
            documentation,
            ["model", "version", "level"],
            (
                ([window.model, str(window.version), level], share)
                for window in windows
                for level, share in window.metrics.get(key, {}).items()
            ),
        )
    checks = [(window, window.metrics.get("check", {})) for window in windows]
    for name, (key, documentation) in COVERAGE.items():
        yield _labelled(
            f"credence_feedback_{name}",
            documentation,
            ["model", "version", "level"],
            (
                ([window.model, str(window.version), level], test[key])
                for window, check in checks
                for level, test in check.get("coverage", {}).items()
            ),
        )
    yield _labelled(
        "credence_feedback_calibration_p_value",
        "Classes: probability of as many or as few correct rows, if nothing has changed",
        ["model", "version"],
        (
            ([window.model, str(window.version)], check["calibration"]["p_value"])
            for window, check in checks
            if "calibration" in check
        ),
    )
    yield _labelled(
        "credence_feedback_alarm_p_value",
        "The p-value at which, or below which, there is an alarm",
        ["model", "version"],
        (
            ([window.model, str(window.version)], check["alarm_p_value"])
            for window, check in checks
            if check
        ),
    )
    for name, (metric, documentation) in FEEDBACK.items():
        yield _labelled(
            f"credence_feedback_{name}",
            documentation,
            ["model", "version"],
            (
                ([window.model, str(window.version)], value)
                for window in windows
                if (value := window.metrics.get(metric)) is not None
            ),
        )


class MemoryCollector(Collector):
    """Memory that is reserved for requests and for loaded models."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget

    def describe(self) -> list[Metric]:
        return [_gauge("credence_memory_limit_bytes", "")]

    def collect(self) -> Iterator[Metric]:
        yield _gauge(
            "credence_memory_limit_bytes",
            "Memory that requests and loaded models may hold together",
            self._budget.total,
        )
        yield _labelled(
            "credence_memory_reserved_bytes",
            "Memory that is reserved, by use",
            ["use"],
            (([use], held) for use, held in self._budget.reserved().items()),
        )


class ModelsCollector(Collector):
    """The models in memory, and the metrics to expect on rows like those of training."""

    def __init__(self, loaded: Callable[[], Sequence[LoadedModel]]) -> None:
        self._loaded = loaded

    def describe(self) -> list[Metric]:
        return [_gauge("credence_models_loaded", "")]

    def collect(self) -> Iterator[Metric]:
        loaded = self._loaded()
        num_bytes = sum(entry.num_bytes for entry in loaded)
        yield _gauge("credence_models_loaded", "Model versions in memory", len(loaded))
        yield _gauge("credence_models_loaded_bytes", "Memory of the loaded models", num_bytes)
        labels = ["model", "version"]
        full = [
            ([entry.version.model, str(entry.version.version)], entry.model.variant(0.0))
            for entry in loaded
        ]
        yield _labelled(
            "credence_model_epistemic_share",
            "Mean epistemic ÷ total variance on held-out rows, when the version was trained",
            labels,
            (
                (values, variant.metrics["epistemic_share"])
                for values, variant in full
                if variant.metrics.get("epistemic_share") is not None  # texts, diverged forecasts
            ),
        )
        yield _labelled(
            "credence_model_epistemic_share_bound",
            "The mean share of rows like those of training is below it, for 99.9 % of versions",
            labels,
            (
                (values, _share_bound(variant))
                for values, variant in full
                if variant.metrics.get("epistemic_share") is not None
            ),
        )
        yield _labelled(
            "credence_model_out_of_distribution_ratio",
            "Share of rows like those of training that is flagged as out of distribution",
            labels,
            (
                (values, v.detector.false_alarm_rate if v.detector else FALSE_ALARMS)
                for values, v in full
            ),
        )
        yield _labelled(
            "credence_model_out_of_distribution_bound",
            "The flagged share of rows like those of training is below it, for 99.9 % of versions",
            labels,
            (
                (values, v.detector.highest_rate())
                for values, v in full
                if v.detector  # texts have none
            ),
        )
        promised = [(values, v.promise) for values, v in full if v.promise is not None]
        yield _labelled(
            "credence_model_expected_loss",
            "Mean loss that predictions expect of held-out rows, when the version was trained",
            labels,
            ((values, promise.loss) for values, promise in promised),
        )
        yield _labelled(
            "credence_model_expected_loss_error",
            "Its standard error",
            labels,
            ((values, promise.loss_error) for values, promise in promised),
        )


def _share_bound(variant: Variant) -> float:
    metrics = variant.metrics
    return highest_mean(metrics["epistemic_share"], independent_rows(metrics))


def watch_queue(registry: CollectorRegistry, admission: Admission, engine: Engine) -> None:
    """Add gauges of the queue and of the engine's progress."""
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
            "Time without progress; 0 without work, +Inf if the engine has died",
            engine.stalled_seconds,
        ),
    ]
    for name, documentation, read in gauges:
        Gauge(name, documentation, registry=registry).set_function(read)


def _gauge(name: str, documentation: str, value: float | None = None) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)


def _labelled(name: str, documentation: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _by_label(counts: Mapping[str, int]) -> Samples:
    return [([label], count) for label, count in counts.items()]
