"""What a worker does every few seconds beside its job."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.context import Context
from tests.app.running import publish, regression_columns
from worker.metrics import WorkerMetrics
from worker.sweeper import Sweeper


def models_in(metrics: WorkerMetrics) -> set[str]:
    """The models in all series of the worker's metrics."""
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    return {sample.labels["model"] for sample in samples if "model" in sample.labels}


@pytest.mark.parametrize("busy", [False, True])
def test_metrics_of_deleted_models_are_removed_while_a_job_runs(
    context: Context, busy: bool
) -> None:
    """They stayed for as long as the job of another model took. The first version of the model that
    is being trained does not exist yet: its metrics stay."""
    publish(context, "price", regression_columns(), target="price")
    metrics = WorkerMetrics()
    for model in ("price", "gone", "new"):
        metrics.epoch_seconds.labels(model).observe(0.1)
    metrics.nelbo.labels("new").set(1.0)
    metrics.kl.labels("new").set(1.0)
    runner = cast(Any, SimpleNamespace(busy=busy, worker_id="w", wake_ups=0))
    sweeper = Sweeper(context, runner, metrics, "cpu")
    sweeper._run()
    assert models_in(metrics) == {"price", "new"}
    context.registry.delete_model("price")
    metrics.remove("new")  # the job has failed: there will be no such model
    for _ in range(5):
        sweeper._run()
    assert models_in(metrics) == set()
