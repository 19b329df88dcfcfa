"""The Prometheus metrics of the API process; one registry per application."""

import threading
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter, time_ns
from typing import TypeVar

import numpy as np
from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from app.errors import status_of
from app.metrics.collectors import (
    BacklogCollector,
    FeedbackCollector,
    MemoryCollector,
    ModelsCollector,
    watch_queue,
)
from app.metrics.deleted_models import DeletedModels, Find, Versions
from app.metrics.routes import method_label
from app.serving.admission import Admission
from app.serving.batching import Batch
from app.serving.engine import Engine
from app.serving.model_cache import LoadedModel, ModelCache
from core.jobs.backlog import Backlog
from core.predictions.feedback import Rolling
from core.process.memory_budget import MemoryBudget
from core.telemetry import tracing
from core.telemetry.exposition import register_process
from models.prediction.outputs.reasons import REASONS
from models.prediction.prediction import Prediction, RowPrediction

T = TypeVar("T")

SAMPLE_STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
STAGES = ("decode", "queue", "compute", "encode")
NO_MODEL = ""  # if the model does not exist: names in requests must not create label values

# Four per decade around the latencies of interest.
SECONDS = tuple(digit * 10.0**exponent for exponent in range(-4, 2) for digit in (1, 2, 3, 5))
WORK = tuple(10.0**exponent for exponent in range(9))
REQUESTS = tuple(2.0**exponent for exponent in range(9))
SHARES = tuple(round(0.05 * i, 2) for i in range(21))


class Metrics:
    def __init__(self, data_dir: Path, read_backlog: Callable[[], Backlog]) -> None:
        self.registry = registry = CollectorRegistry()
        register_process(registry, data_dir)
        registry.register(BacklogCollector(read_backlog))
        self.predict_latency = Histogram(
            "credence_predict_latency_seconds",
            "Time from the first byte of a request to its response",
            ["model", "samples", "variant"],
            buckets=SECONDS,
            registry=registry,
        )
        self.predict_stage = Histogram(
            "credence_predict_stage_seconds",
            "Time that a prediction spends in each stage",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self._stages = {stage: self.predict_stage.labels(stage) for stage in STAGES}
        self.predict_requests = Counter(
            "credence_predict_requests",
            "Prediction requests by HTTP status",
            ["model", "status"],
            registry=registry,
        )
        self.predict_rows = Counter("credence_predict_rows", "Rows predicted", registry=registry)
        self.batch_work = Histogram(
            "credence_predict_batch_work",
            "Rows × samples of one batch in the engine",
            buckets=WORK,
            registry=registry,
        )
        self.batch_requests = Histogram(
            "credence_predict_batch_requests",
            "Requests that were computed as one batch in the engine",
            buckets=REQUESTS,
            registry=registry,
        )
        self.epistemic_share = RowHistogram(
            "credence_predict_epistemic_share",
            "Epistemic ÷ total variance of each row, for drift",
            SHARES,
        )
        self.out_of_distribution_rows = Counter(
            "credence_predict_out_of_distribution_rows",
            "Rows unlike those the model was trained on",
            ["model"],
            registry=registry,
        )
        self.reasons = Counter(
            "credence_predict_reasons",
            "Rows unlike those of training, by the code of their first reason",
            ["model", "code"],
            registry=registry,
        )
        registry.register(self.epistemic_share)
        loss = "Loss that served predictions of tables expect of their rows: 1 − the largest "
        loss += "probability, or the standard deviation in the target's unit"
        self.expected_loss, self.expected_loss_squares, self.expected_loss_rows = (
            Counter(f"credence_predict_expected_loss{name}", text, ["model"], registry=registry)
            for name, text in (
                ("", f"{loss}: the sum"),
                ("_squares", f"{loss}: the sum of squares"),
                ("_rows", f"{loss}: the number of rows"),
            )
        )
        # One look-up of a metric's labels takes as long as counting, so each is done once.
        known = lru_cache(maxsize=1024)
        self._latency = known(self.predict_latency.labels)
        self._requests = known(self.predict_requests.labels)
        self._flagged = known(self.out_of_distribution_rows.labels)
        self._losses = known(self._children_of_loss)
        self.http_requests = Counter(
            "credence_http_requests",
            "Requests by the template of their path, method and HTTP status",
            ["route", "method", "status"],
            registry=registry,
        )
        self._http_requests = known(self.http_requests.labels)
        self._deleted: DeletedModels | None = None
        self.feedback_rows = Counter(
            "credence_feedback_rows",
            "Rows for which a label was sent",
            ["model"],
            registry=registry,
        )
        self._by_model = (
            *(self.predict_latency, self.predict_requests, self.out_of_distribution_rows),
            *(self.reasons, self.expected_loss, self.expected_loss_squares),
            *(self.expected_loss_rows, self.feedback_rows),
        )
        self._loaded: Callable[[], Sequence[LoadedModel]] = tuple
        self._versions: Versions | None = None

    def watch(self, cache: ModelCache, admission: Admission, engine: Engine) -> None:
        """Add the metrics of loaded models, the queue and the engine, read at each scrape."""
        self._loaded = cache.loaded
        self.registry.register(ModelsCollector(lambda: self._present(cache.loaded())))
        watch_queue(self.registry, admission, engine)

    def watch_memory(self, budget: MemoryBudget) -> None:
        """Add the metrics of reserved memory, read at each scrape."""
        self.registry.register(MemoryCollector(budget))

    def watch_feedback(self, read: Callable[[], Sequence[Rolling]]) -> None:
        """Add the metrics of labelled rows, read at each scrape."""
        self.registry.register(FeedbackCollector(read))

    def watch_deletions(self, find: Find) -> None:
        """At each scrape, remove the metrics of models that were deleted.

        Args:
            find: the versions, in the database, of the models with some names.
        """
        self._deleted = DeletedModels(self._model_names, find)

    def count_refusal(self) -> None:
        """Count a prediction that was refused before it was read."""
        self.predict_requests.labels(NO_MODEL, "503").inc()
        self.count_request("/predict", "POST", 503)

    def count_request(self, route: str, method: str, status: int) -> None:
        """Count a response.

        Args:
            route: the template of its path.
        """
        self._http_requests(route, method_label(method), str(status)).inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        self._forget_deleted()
        return generate_latest(self.registry)

    def _forget_deleted(self) -> None:
        """Remove the metrics of models that were deleted meanwhile, here or by another process."""
        if self._deleted is None:
            return
        gone, self._versions = self._deleted.result()
        for name in gone:
            for metric in self._by_model:
                metric.remove_by_labels({"model": name})
            self.epistemic_share.remove(name)
        if gone:  # a child that was removed counts for nobody
            for known in (self._latency, self._requests, self._flagged, self._losses):
                known.cache_clear()

    def _model_names(self) -> set[str]:
        families = [family for metric in self._by_model for family in metric.collect()]
        found = {sample.labels["model"] for family in families for sample in family.samples}
        loaded = {entry.version.model for entry in self._loaded()}
        return (found | self.epistemic_share.models() | loaded) - {NO_MODEL}

    def _present(self, loaded: Sequence[LoadedModel]) -> Sequence[LoadedModel]:
        """The loaded versions that were not deleted."""
        if self._versions is None:
            return loaded
        return [e for e in loaded if (e.version.model, e.version.version) in self._versions]

    @contextmanager
    def predict_request(self) -> Iterator["PredictMeasure"]:
        """A block that counts a request by its status, and observes the stages of a 200."""
        measure = PredictMeasure()
        try:
            yield measure
        except BaseException as error:
            self.predict_requests.labels(measure.model, str(status_of(error))).inc()
            raise
        self._requests(measure.model, "200").inc()
        for stage, seconds in measure.stages.items():
            self._stages[stage].observe(seconds)

    def observe_batch(self, batch: Batch) -> None:
        """Observe a batch; called by the engine's thread."""
        self.batch_work.observe(batch.rows * batch.samples)
        self.batch_requests.observe(len(batch.entries))

    def observe_prediction(self, measure: "PredictMeasure", prediction: Prediction) -> None:
        """Observe the latency of a prediction, and the metrics of drift."""
        labels = (
            measure.model,
            samples_label(prediction.samples),
            f"{prediction.prune:g}",
        )
        self._latency(*labels).observe(measure.seconds)
        self.predict_rows.inc(prediction.num_rows)
        if measure.exploring:
            return
        out_of_distribution = int(prediction.out_of_distribution.sum())
        self._flagged(measure.model).inc(out_of_distribution)
        for code, rows in _first_reasons(prediction).items() if out_of_distribution else ():
            self.reasons.labels(measure.model, code).inc(rows)
        self.epistemic_share.observe(measure.model, prediction["epistemic_share"])
        if isinstance(prediction, RowPrediction) and prediction.get("time") is None:
            self._observe_loss(measure.model, prediction.expected_loss)

    def _observe_loss(self, model: str, loss: np.ndarray) -> None:
        """Add the finite losses of the rows."""
        loss = loss[np.isfinite(loss)]
        sums, squares, rows = self._losses(model)
        sums.inc(float(loss.sum()))
        squares.inc(float(np.square(loss).sum()))
        rows.inc(len(loss))

    def _children_of_loss(self, model: str) -> tuple[Counter, Counter, Counter]:
        return (
            self.expected_loss.labels(model),
            self.expected_loss_squares.labels(model),
            self.expected_loss_rows.labels(model),
        )


def _first_reasons(prediction: Prediction) -> Counts[str]:
    """The number of flagged rows by the code of their first reason."""
    return Counts(row[0].code for row in prediction.get(REASONS.name) or () if row)


class PredictMeasure:
    """The model of a prediction request, and the seconds of each stage.

    If `exploring`, the rows do not count for drift: the dashboard deliberately predicts outside the
    range of the training rows.
    """

    def __init__(self) -> None:
        self.model = NO_MODEL
        self.exploring = False
        self.stages: dict[str, float] = {}
        self.started = perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the request began."""
        return perf_counter() - self.started

    async def timed(self, stage: str, work: Awaitable[T]) -> T:
        """The result of `work`, whose time is added to a stage."""
        started = perf_counter()
        result = await work
        self.stages[stage] = self.stages.get(stage, 0.0) + perf_counter() - started
        return result

    def record_spans(self, version: int, prediction: Prediction) -> None:
        """Add spans of the stages to the request's span, after the response is written.

        Decoding starts with the request. Queue, compute and encode are the last stages, one after
        the other. In between, the model is looked up and loaded.
        """
        request = trace.get_current_span()
        if not request.is_recording():
            return
        end = time_ns()
        start = end - round(1e9 * self.seconds)
        nanoseconds = {name: round(1e9 * seconds) for name, seconds in self.stages.items()}
        tracing.record("decode", start, start + nanoseconds.pop("decode"))
        for name in ("encode", "compute", "queue"):
            start = end - nanoseconds[name]
            tracing.record(name, start, end)
            end = start
        request.set_attributes(
            {
                "credence.model": self.model,
                "credence.version": version,
                "credence.rows": prediction.num_rows,
                "credence.samples": prediction.samples,
            }
        )


class RowHistogram(Collector):
    """A histogram by model that observes arrays; prometheus_client's takes one value at a time."""

    def __init__(self, name: str, documentation: str, bounds: Sequence[float]) -> None:
        self._family = partial(HistogramMetricFamily, name, documentation, labels=["model"])
        self._bounds = np.array(bounds)
        self._counts: dict[str, np.ndarray] = {}
        self._sums: dict[str, float] = {}
        self._lock = threading.Lock()

    def observe(self, model: str, values: np.ndarray) -> None:
        """Count each finite value in the first bucket whose bound is at least the value."""
        finite = values[np.isfinite(values)]
        buckets = np.searchsorted(self._bounds, finite)
        counts = np.bincount(buckets, minlength=len(self._bounds) + 1)
        with self._lock:
            self._counts[model] = self._counts.get(model, 0) + counts
            self._sums[model] = self._sums.get(model, 0.0) + float(finite.sum())

    def models(self) -> set[str]:
        """The models with values."""
        with self._lock:
            return set(self._counts)

    def remove(self, model: str) -> None:
        """Forget the values of a model."""
        with self._lock:
            self._counts.pop(model, None)
            self._sums.pop(model, None)

    def describe(self) -> list[Metric]:
        return [self._family()]

    def collect(self) -> Iterator[Metric]:
        family = self._family()
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        with self._lock:
            for model, counts in self._counts.items():
                buckets = list(zip(names, np.cumsum(counts).tolist(), strict=True))
                family.add_metric([model], buckets, self._sums[model])
        yield family


def samples_label(samples: int) -> str:
    """The number of samples, rounded up to a step so that the label has few values."""
    index = min(bisect_left(SAMPLE_STEPS, samples), len(SAMPLE_STEPS) - 1)
    return str(SAMPLE_STEPS[index])
