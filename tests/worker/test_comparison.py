"""A comparison, and what is measured of each model beside its scores."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from core.context import Context
from core.jobs import comparison
from core.jobs.jobs import CompareSpec, Job, JobStatus, MethodSpec
from models.artifact.files import read_model
from models.config import BBBConfig, MAPConfig, MethodConfig, MLPConfig, ModelConfig
from models.features.splits import divide_rows
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from tests.worker.conftest import QUICK
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

POINT = MAPConfig(kind="map")
TRAINING = replace(QUICK, epochs=5, fine_tune_epochs=0)


@pytest.fixture
def strange(context: Context) -> str:
    """Inputs far outside those of the line; the target is not needed."""
    x = np.random.default_rng(1).uniform(4, 8, 50)
    return context.datasets.add_columns("strange", {"x": x.tolist()})[0].id


def compare_job(context: Context, dataset: str, strange: str | None, *methods: MethodConfig) -> Job:
    """A queued comparison; the wake-ups are not sent."""
    stored = context.datasets.get(dataset)
    common: dict[str, Any] = {"model": "line", "dataset": dataset, "out_of_distribution": strange}
    specs = []
    for method in methods:
        network = MLPConfig(hidden=(8,))
        wanted = ModelConfig(
            target="y", network=network, method=method, training=TRAINING, pruning=()
        )
        config = resolve(wanted, stored.columns, stored.rows)
        specs.append(MethodSpec(**common, name=method.kind, config=config))
    whole = CompareSpec(**common, config=specs[0].config, methods=methods)
    return context.jobs.create_comparison(whole, specs)


def load(context: Context, version: int) -> TabularModel:
    return read_model(context.registry.path(context.registry.get("line", version)))


def test_scores_are_those_of_the_published_models_made_again(
    context: Context, dataset: str, strange: str, runner: JobRunner
) -> None:
    """The AUROC is that of the predicted epistemic variance, which of a point is 0 everywhere."""
    job = compare_job(context, dataset, strange, BBBConfig(), POINT)
    runner.wake()
    runner.wake()
    assert context.jobs.get(job.id).status is JobStatus.SUCCEEDED
    rows = {row["name"]: row for row in comparison.table(context.jobs, job.id)}
    columns = context.datasets.columns(dataset)
    held_out = divide_rows(TRAINING, 200, None).scores
    for row in rows.values():
        model = load(context, row["version"])
        assert model.config.method.kind == row["method"]
        again = model.evaluate({name: values[held_out] for name, values in columns.items()})
        assert row["log_likelihood"] == pytest.approx(again["log_likelihood"], rel=1e-3)
        assert row["rmse"] == pytest.approx(again["rmse"], rel=1e-3)
        assert row["coverage_0.9"] == again["coverage"]["0.9"]
        assert row["num_weights"] == model.num_weights
        assert row["bytes"] == model.variant(0.0).num_bytes
        assert row["predict_ms"] > 0
        assert row["train_seconds"] > 0
    assert rows["map"]["ood_auroc"] == 0.5
    usual = columns["x"][held_out]
    x = np.concatenate([usual, context.datasets.columns(strange)["x"]])
    model = load(context, rows["bbb"]["version"])
    epistemic = model.predict({"x": x}, PredictOptions()).variance["epistemic"]
    expected = roc_auc_score(np.arange(len(x)) >= len(usual), epistemic)
    assert rows["bbb"]["ood_auroc"] == pytest.approx(expected, abs=1e-3)


def test_a_stop_gives_the_training_back(context: Context, dataset: str, runner: JobRunner) -> None:
    """Asked to stop once the fit is done; the next attempt has no need to fit."""
    job = compare_job(context, dataset, None, POINT)
    (only,) = context.jobs.parts(job.id)

    def is_fitted() -> bool:
        return (context.jobs.get(only.id).progress or {}).get("fraction") == 1

    JobRunner(context, "stopping", WorkerMetrics(), is_fitted).wake()
    handed_back = context.jobs.get(only.id)
    assert handed_back.status is JobStatus.QUEUED
    assert "bytes" not in handed_back.metrics
    assert context.checkpoints.exists(only.id)
    runner.wake()
    done = context.jobs.get(only.id)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2)
    assert done.metrics["bytes"] > 0
