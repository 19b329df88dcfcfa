"""Runs the job of a schedule: the newest rows, a training, the gate."""

from collections.abc import Callable

import structlog

from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.resolution import notes_on_targets, resolve_targets
from core.jobs.jobs import Claim, TrainSpec
from core.jobs.specs import Scheduled
from core.schedules.runs import Runs
from worker.metrics import WorkerMetrics
from worker.training import run_training

log = structlog.get_logger()


def run_scheduled(
    context: Context,
    claim: Claim,
    spec: TrainSpec,
    metrics: WorkerMetrics,
    should_stop: Callable[[], bool],
) -> None:
    """Train on the newest rows; the gate decides in the transaction that publishes the version.

    A run whose source is the same as before ends without a training.
    """
    spec = _prepared(context, claim, spec)
    version = _learned_before(context, claim, spec)
    if version is not None:
        log.info("nothing new to learn", version=version)
        Runs(context.database).end_unchanged(claim, spec, version)
        return
    run_training(context, claim, spec, metrics, should_stop)


def _prepared(context: Context, claim: Claim, spec: TrainSpec) -> TrainSpec:
    """The training of a run, with its own data set and configuration.

    It is stored with the job: a later attempt learns from the same rows, and continues from the
    checkpoint.

    Raises:
        NotFound, Conflict: the data set was deleted, or its source cannot be read again.
        InvalidData, Invalid: the training does not fit the rows any more.
        Unavailable: the source does not answer.
    """
    scheduled = spec.scheduled
    if scheduled is None or scheduled.is_prepared:
        return spec
    runs = Runs(context.database)
    own = context.for_caller(runs.caller(claim, spec))
    if scheduled.refreshes:
        dataset, _ = own.sources.refresh(spec.dataset)
    else:
        dataset = own.datasets.get(spec.dataset)
    spec = _resolved(own, spec, scheduled, dataset)
    runs.prepare(claim, spec)
    return spec


def _learned_before(context: Context, claim: Claim, spec: TrainSpec) -> int | None:
    """The version that has learned from the rows of a run by `cron` already; None to train.

    Only a source that was read again tells that there is nothing new.
    """
    scheduled = spec.scheduled
    if scheduled is None or not scheduled.refreshes or scheduled.reason != "cron":
        return None
    return Runs(context.database).learned(claim, spec.dataset)


def _resolved(own: Context, spec: TrainSpec, scheduled: Scheduled, dataset: Dataset) -> TrainSpec:
    first, *others = resolved = resolve_targets(own.datasets, dataset, scheduled.configs)
    return spec.model_copy(
        update={
            "dataset": dataset.id,
            "config": first,
            "others": tuple(others),
            "notes": notes_on_targets(own.datasets, dataset, scheduled.configs, resolved),
            "scheduled": scheduled.model_copy(update={"is_prepared": True}),
        }
    )
