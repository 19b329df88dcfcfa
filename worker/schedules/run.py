"""Runs the job of a schedule: the newest rows, a training, the gate."""

from collections.abc import Callable

import structlog

from core.context import Context
from core.jobs.jobs import Claim, TrainSpec
from core.schedules.runs import Runs
from worker.metrics import WorkerMetrics
from worker.schedules.preparation import learned_before, prepared
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
    spec = prepared(context, claim, spec)
    version = learned_before(context, claim, spec)
    if version is not None:
        log.info("nothing new to learn", version=version)
        Runs(context.database).end_unchanged(claim, spec, version)
        return
    run_training(context, claim, spec, metrics, should_stop)
