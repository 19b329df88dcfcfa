"""Runs a training job: reads the columns, trains the model, and publishes a version."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import structlog
import torch

from core.calendars import holidays_of
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.inputs import target_type
from core.exceptions import Unavailable
from core.jobs.jobs import Claim, MethodSpec, TrainSpec
from core.process.devices import job_device
from core.registry.registry import AlsoPublished, Version
from core.schedules.runs import settling
from core.telemetry import tracing
from models.artifact.files import read_model, write_model
from models.exceptions import Diverged, InvalidData
from models.features.columns import Columns, readings_of
from models.inference.registry import method_of
from models.joint.fitting import train_joint
from models.joint.model import JointModel, complete
from models.model import TrainedModel
from models.prediction.threads import training_threads
from models.tabular.model import TabularModel
from models.training.progress import Progress
from models.training.train import TrainingRun, train
from worker.baselines.adding import with_baselines
from worker.checkpoint_uploader import uploading
from worker.measurement import measure
from worker.metrics import WorkerMetrics
from worker.schedules.gate import decide
from worker.shared_folder import SharedFolder, Training
from worker.streaming import must_stream, train_from_disk
from worker.torchrun import processes_for, train_in_processes

FAR = ("extreme", "sentinel")  # findings of values that lie far from all others

log = structlog.get_logger()


def run_training(
    context: Context,
    claim: Claim,
    spec: TrainSpec,
    metrics: WorkerMetrics,
    should_stop: Callable[[], bool],
) -> Version:
    """Train a model, then publish it and end the job in one transaction."""
    reporter = _Reporter(context, claim, spec.model, metrics)
    with tempfile.TemporaryDirectory(dir=context.scratch.path) as temporary:
        folder = SharedFolder(Path(temporary))
        with uploading(context, claim, folder.checkpoints, should_stop) as upload_or_stop:
            dataset = context.datasets.get(spec.dataset)
            training = _training(context, spec, dataset)
            compared = isinstance(spec, MethodSpec)
            with _naming_causes(dataset, training):
                model = _train(
                    context, dataset, training, folder, reporter, upload_or_stop, compared=compared
                )
            model = write_model(_described(model, spec, dataset), folder.model)
            if isinstance(spec, MethodSpec):
                _measure(context, claim, spec, training, folder, upload_or_stop)
            gate = _gate(context, claim, spec, training, folder, upload_or_stop)
            alias = spec.alias if gate is None else None
            with tracing.span("publish"):
                version = context.registry.publish(
                    claim, spec.model, folder.model, model.description, spec.dataset, alias, gate
                )
    try:
        context.checkpoints.drop(claim.job_id)
    except Unavailable as error:
        log.warning("checkpoints of a finished job are still stored", error=str(error))
    return version


@contextmanager
def _naming_causes(dataset: Dataset, training: Training) -> Iterator[None]:
    """Add what explains it to the error: extreme values, or formulas without values."""
    try:
        yield
    except (Diverged, InvalidData) as error:
        codes = FAR if isinstance(error, Diverged) else ("formulas",)
        found = [
            one.message
            for one in dataset.findings
            if one.code in codes and one.column in training.types
        ]
        raise type(error)("; ".join([error.message, *found]), error.path) from error


def _gate(  # noqa: PLR0917 - a training, where it runs, and when to stop
    context: Context,
    claim: Claim,
    spec: TrainSpec,
    training: Training,
    folder: SharedFolder,
    should_stop: Callable[[], bool],
) -> AlsoPublished | None:
    """What the gate of a schedule does when the version is published; None without a schedule."""
    if spec.scheduled is None:
        return None
    decision = decide(context, spec, training.types, folder.model, should_stop)
    return settling(claim, spec, decision)


def _measure(  # noqa: PLR0917 - a training, where it runs, and when to stop
    context: Context,
    claim: Claim,
    spec: MethodSpec,
    training: Training,
    folder: SharedFolder,
    should_stop: Callable[[], bool],
) -> None:
    """Measure a method of a comparison, for the table of all methods."""
    measured, scores = measure(context, spec, training.types, folder.model, should_stop)
    context.jobs.report(claim, metrics=measured)
    parent = context.jobs.get(claim.job_id).parent
    if scores is not None and parent is not None:
        context.row_scores.publish(claim, parent, scores, folder.path)


def _training(context: Context, spec: TrainSpec, dataset: Dataset) -> Training:
    profiles = {profile.name: profile for profile in dataset.columns}
    configs = (spec.config, *spec.others)
    types = {name: profiles[name].type for config in configs for name in config.columns}
    types |= {config.target: target_type(profiles[config.target]) for config in configs}
    return Training(
        config=spec.config,
        others=spec.others,
        types=types,
        device=job_device(spec.config.training.device, context.settings),
        checkpoint_seconds=context.settings.checkpoint_seconds,
    )


def _train(  # noqa: PLR0917 - a training, where it runs, and its two callbacks
    context: Context,
    dataset: Dataset,
    training: Training,
    folder: SharedFolder,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
    *,
    compared: bool,
) -> TrainedModel:
    """Train in this process or in several others, from memory or from disk."""
    config, names = training.config, list(training.types)
    run = TrainingRun(on_progress, should_stop, folder.checkpoints, training.checkpoint_seconds)
    if must_stream(context, dataset, training, compared=compared):
        with tracing.span("train", streamed=True):
            torch.set_num_threads(training_threads(config, context.settings.threads, 1))
            return train_from_disk(context, dataset, training, run, folder.path)
    # Steps of a chain and windows of a text depend on the ones before. Series are short. Several
    # targets are trained one after the other.
    is_sequential = bool(training.others) or method_of(config.method).in_one_process
    is_sequential = is_sequential or config.task in (
        "language_model",
        "forecasting",
    )
    processes = 1 if is_sequential else processes_for(training.device, context.settings)
    threads = training_threads(config, context.settings.threads, processes)
    if processes > 1:
        with tracing.span("load data"):
            context.datasets.export(dataset.id, names, folder.data)
        with tracing.span("train", processes=processes):
            folder.write_training(training)
            train_in_processes(folder, processes, threads, on_progress, should_stop)
            torch.set_num_threads(threads)
            columns = context.datasets.columns(dataset.id, names, types=training.types)
            model = read_model(folder.model)
            return with_baselines(model, columns, training.types, should_stop)
    with tracing.span("load data"):
        columns = context.datasets.columns(dataset.id, names, types=training.types)
    with tracing.span("train"):
        torch.set_num_threads(threads)
        if training.others:
            return _train_joint(columns, training, run)
        holidays = holidays_of(config, columns)
        model = train(columns, training.types, config, run, training.device, holidays=holidays)
        return with_baselines(model, columns, training.types, should_stop)


def _train_joint(columns: Columns, training: Training, run: TrainingRun) -> JointModel:
    """Train all targets; the baselines of each learn from the same rows."""
    configs, types = (training.config, *training.others), training.types
    joint = train_joint(columns, types, configs, run, training.device)
    columns = complete(columns, joint.targets)
    compared = [with_baselines(one, columns, types, run.should_stop) for one in joint.members]
    return joint.with_members(cast(TabularModel, one) for one in compared)


def _described(model: TrainedModel, spec: TrainSpec, dataset: Dataset) -> TrainedModel:
    """The model with what is known of its columns: their source, how they were read, and more."""
    if isinstance(model, JointModel):
        first, *others = model.members
        described = [_described(first, spec, dataset)]
        for one, config in zip(others, spec.others, strict=True):
            of_target = spec.model_copy(update={"config": config, "notes": ()})
            described.append(_described(one, of_target, dataset))
        return model.with_members(cast(TabularModel, one) for one in described)
    readings = readings_of(dataset.readings, spec.config.columns)
    own = [note for note in model.notes if note not in spec.notes]
    source = {} if dataset.source is None else {"source": dataset.source}
    card = model.card | source
    return replace(model, readings=readings, notes=(*spec.notes, *own), card=card)


class _Reporter:
    """Writes progress to the job's row, its events and Prometheus."""

    def __init__(self, context: Context, claim: Claim, model: str, metrics: WorkerMetrics) -> None:
        self._context, self._claim = context, claim
        self._model, self._metrics = model, metrics
        self._last: tuple[str, int, float] | None = None

    def __call__(self, progress: Progress) -> None:
        data = asdict(progress)
        terms = {k: v for k, v in data.pop("metrics").items() if v is not None}
        self._context.jobs.report(self._claim, data, terms or None)
        if not terms:  # a candidate was dropped
            return
        self._metrics.nelbo.labels(self._model).set(terms["nelbo"])
        self._metrics.kl.labels(self._model).set(terms["kl"])
        self._observe_epochs(progress)

    def _observe_epochs(self, progress: Progress) -> None:
        """Observe the epochs since the last report: there is at most one report per half second."""
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
