"""A training job: columns from the store, a model from `models`, a version in the registry."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import structlog

from core.context import Context
from core.exceptions import Unavailable
from core.jobs.jobs import Claim, MethodSpec, TrainSpec
from core.process.devices import job_device
from core.registry.registry import Version
from core.telemetry import tracing
from models.artifact.files import read_model, write_model
from models.config import ChainConfig, ModelConfig, SplitBy, SplitTime
from models.model import TrainedModel
from models.prediction.threads import training_threads
from models.training.progress import Progress
from worker.baselines import with_baselines
from worker.exchange import Exchange
from worker.keeper import Keeper
from worker.launcher import processes_for, train_together
from worker.measurement import measure
from worker.metrics import WorkerMetrics
from worker.order import Order

log = structlog.get_logger()


def run_training(
    context: Context,
    claim: Claim,
    spec: TrainSpec,
    metrics: WorkerMetrics,
    should_stop: Callable[[], bool],
) -> Version:
    """Trains, then publishes and ends the job in one transaction."""
    reporter = _Reporter(context, claim, spec.model, metrics)
    with tempfile.TemporaryDirectory(dir=context.scratch.path) as temporary:
        exchange = Exchange(Path(temporary))
        order = _order(context, spec, exchange.checkpoints)
        with _kept(context, claim, exchange.checkpoints, should_stop) as keep_or_stop:
            model = _train(
                context,
                spec.dataset,
                order,
                exchange,
                on_progress=reporter,
                should_stop=keep_or_stop,
            )
            if isinstance(spec, MethodSpec):
                measured = measure(context, spec, order.types, exchange.model, keep_or_stop)
                context.jobs.report(claim, metrics=measured)
            with tracing.span("publish"):
                version = context.registry.publish(
                    claim, spec.model, exchange.model, model.description, spec.dataset, spec.alias
                )
    try:
        context.checkpoints.drop(claim.job_id)
    except Unavailable as error:
        log.warning("checkpoints of a job that is done stay", error=str(error))
    return version


@contextmanager
def _kept(
    context: Context, claim: Claim, folder: Path, should_stop: Callable[[], bool]
) -> Iterator[Callable[[], bool]]:
    """The folder with what earlier attempts saved; what is saved in it is kept, also at a failure.

    Gives a `should_stop` that keeps what is due before it asks.
    """
    if context.checkpoints.fetch(claim.job_id, folder):
        context.jobs.event(claim, "log", {"message": "goes on from a checkpoint"})
    keeper = Keeper(context.checkpoints, claim, folder, context.settings.checkpoint_seconds)

    def keep_or_stop() -> bool:
        keeper.keep_if_due()
        return should_stop()

    try:
        yield keep_or_stop
    except Exception:
        keeper.keep()
        raise


def _order(context: Context, spec: TrainSpec, checkpoints: Path) -> Order:
    types = {profile.name: profile.type for profile in context.datasets.get(spec.dataset).columns}
    device = job_device(spec.config.training.device, context.settings)
    # A chain's step needs the last one, a text's window the one before; series are short.
    alone = ("language_model", "forecasting")
    shares = not isinstance(spec.config.method, ChainConfig) and spec.config.task not in alone
    processes = processes_for(device, context.settings) if shares else 1
    return Order(
        config=spec.config,
        types={name: types[name] for name in columns_needed(spec.config)},
        device=device,
        processes=processes,
        threads=training_threads(spec.config, context.settings.threads, processes),
        checkpoint_dir=checkpoints,
        checkpoint_seconds=context.settings.checkpoint_seconds,
    )


def _train(
    context: Context,
    dataset: str,
    order: Order,
    exchange: Exchange,
    *,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> TrainedModel:
    """In this process, or in several of their own; the model's files are in the exchange then."""
    names = list(order.types)
    if order.processes == 1:
        with tracing.span("load data"):
            columns = context.datasets.columns(dataset, names)
        with tracing.span("train"):
            model = order.carry_out(columns, on_progress, should_stop)
            model = with_baselines(model, columns, should_stop)
        return write_model(model, exchange.model)
    with tracing.span("load data"):
        context.datasets.export(dataset, names, exchange.data)
    with tracing.span("train", processes=order.processes):
        train_together(order, exchange, on_progress, should_stop)
    return read_model(exchange.model)


def columns_needed(config: ModelConfig) -> list[str]:
    """Features, target, row weights, what a split looks at and series' keys; each once."""
    names = [feature.name for feature in config.features or ()]
    names.append(config.target)
    if config.weight is not None:
        names.append(config.weight)
    match config.training.split:
        case SplitBy(by=name) | SplitTime(time=name):
            names.append(name)
    if config.forecast is not None and config.forecast.key is not None:
        names.append(config.forecast.key)
    return list(dict.fromkeys(names))


class _Reporter:
    """Progress to the job's row and events, and to Prometheus."""

    def __init__(self, context: Context, claim: Claim, model: str, metrics: WorkerMetrics) -> None:
        self._context, self._claim = context, claim
        self._model, self._metrics = model, metrics
        self._last: tuple[str, int, float] | None = None

    def __call__(self, progress: Progress) -> None:
        data = asdict(progress)
        terms = {k: v for k, v in data.pop("metrics").items() if v is not None}
        self._context.jobs.report(self._claim, data, terms)
        self._metrics.nelbo.labels(self._model).set(terms["nelbo"])
        self._metrics.kl.labels(self._model).set(terms["kl"])
        self._observe_epochs(progress)

    def _observe_epochs(self, progress: Progress) -> None:
        """Reports come every half second at most: each stands for the epochs since the last."""
        now = time.monotonic()
        if self._last is not None and self._last[0] == progress.stage:
            epochs = progress.epoch - self._last[1]
            for _ in range(epochs):
                self._metrics.epoch_seconds.labels(self._model).observe(
                    (now - self._last[2]) / epochs
                )
        else:
            tracing.event("stage", stage=progress.stage)
        self._last = (progress.stage, progress.epoch, now)
