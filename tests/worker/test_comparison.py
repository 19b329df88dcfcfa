"""A comparison by real workers, and what is measured of each model beside its scores."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from core.context import Context
from core.jobs import comparison
from core.jobs.jobs import CompareSpec, Job, JobStatus, MethodSpec
from models.artifact.files import read_model
from models.config import (
    BBBConfig,
    CyclicalSGLDConfig,
    EnsembleConfig,
    MAPConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
)
from models.exceptions import Stopped
from models.features.splits import split_rows
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from tests.models.language.language_cases import random_lines, trained
from tests.worker.conftest import QUICK, wait_for, worker
from worker.measurement import MOST_ROWS, ood_auroc, predict_ms
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

METHODS: tuple[MethodConfig, ...] = (
    BBBConfig(),
    EnsembleConfig(kind="ensemble", members=2),
    MAPConfig(kind="map"),
)
TRAINING = replace(QUICK, epochs=60, fine_tune_epochs=0)


@pytest.fixture
def runner(context: Context) -> JobRunner:
    return JobRunner(context, "test-worker", WorkerMetrics(), lambda: False)


@pytest.fixture
def strange(context: Context) -> str:
    """Inputs far outside those of the line; the target is not needed."""
    x = np.random.default_rng(1).uniform(4, 8, 50)
    return context.datasets.add_columns("strange", {"x": x.tolist()})[0].id


def compare_job(
    context: Context,
    dataset: str,
    strange: str | None,
    methods: tuple[MethodConfig, ...] = METHODS,
    **training: Any,
) -> Job:
    """A queued comparison; the wake-ups are not sent."""
    stored = context.datasets.get(dataset)
    common = {"model": "line", "dataset": dataset, "out_of_distribution": strange}
    specs = []
    for method in methods:
        wanted = ModelConfig(
            target="y",
            network=MLPConfig(hidden=(8,)),
            method=method,
            training=replace(TRAINING, **training),
            pruning=(),
        )
        config = resolve(wanted, stored.columns, stored.rows)
        specs.append(MethodSpec(**common, name=method.kind, config=config))
    whole = CompareSpec(**common, config=specs[0].config, methods=methods)
    return context.jobs.create_comparison(whole, specs)


def load(context: Context, version: int) -> TabularModel:
    return read_model(context.registry.path(context.registry.get("line", version)))


def test_two_workers_share_the_methods(context: Context, dataset: str, strange: str) -> None:
    """The scores are those of the published models on the same held-out rows, made again here."""
    job = compare_job(context, dataset, strange)
    with worker(context), worker(context):
        for job_id in context.jobs.queued_ids(job.id):
            context.queue.send(job_id)
        wait_for(context, job, JobStatus.SUCCEEDED)
    rows = {row["name"]: row for row in comparison.table(context.jobs, job.id)}
    assert sorted(row["version"] for row in rows.values()) == [1, 2, 3]
    columns = context.datasets.columns(dataset)
    _, held_out = split_rows("random", TRAINING.validation_fraction, TRAINING.seed, 200, None)
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
    assert rows["map"]["ood_auroc"] == 0.5  # its epistemic variance is 0 everywhere
    assert rows["ensemble"]["ood_auroc"] > 0.9


def test_the_auroc_is_that_of_the_predicted_epistemic_variance(
    context: Context, dataset: str, strange: str, runner: JobRunner
) -> None:
    job = compare_job(context, dataset, strange, epochs=5)
    first = context.jobs.parts(job.id)[0]
    runner.wake()
    done = context.jobs.get(first.id)
    assert done.status is JobStatus.SUCCEEDED, done.error
    model = load(context, 1)
    columns = context.datasets.columns(dataset)
    _, held_out = split_rows("random", TRAINING.validation_fraction, TRAINING.seed, 200, None)
    usual = columns["x"][held_out]
    x = np.concatenate([usual, context.datasets.columns(strange)["x"]])
    epistemic = model.predict({"x": x}, PredictOptions()).variance["epistemic"]
    truth = np.arange(len(x)) >= len(usual)
    assert done.metrics["ood_auroc"] == pytest.approx(roc_auc_score(truth, epistemic), abs=1e-3)


def test_a_method_that_diverges_fails_alone(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    wild = CyclicalSGLDConfig(
        kind="csgld", chains=1, cycles=1, cycle_steps=500, draws=2, step_size=10.0
    )
    job = compare_job(context, dataset, None, (wild, MAPConfig(kind="map")), epochs=2)
    for _ in context.jobs.parts(job.id):
        runner.wake()
    failed = context.jobs.get(job.id)
    assert failed.status is JobStatus.FAILED
    assert failed.error is not None
    assert failed.error["code"] == "diverged"
    assert failed.error["message"].startswith("csgld: ")
    diverged, fine = comparison.table(context.jobs, job.id)
    assert (diverged["status"], diverged["version"], diverged["rmse"]) == ("failed", None, None)
    assert (fine["status"], fine["version"]) == ("succeeded", 1)
    assert (diverged["ood_auroc"], fine["ood_auroc"]) == (None, None)  # nobody asked for it


def test_of_many_rows_some_stand_for_all(context: Context, dataset: str, runner: JobRunner) -> None:
    """Ten times as many as are looked at, sorted: the first ones alone would not be strange."""
    compare_job(context, dataset, None, epochs=5)
    runner.wake()
    model, columns = load(context, 1), context.datasets.columns(dataset)
    types = {"x": "number", "y": "number"}
    many = np.linspace(0, 8, 10 * MOST_ROWS)
    few = many[::50]
    found = ood_auroc(model, columns, types, {"x": many}, lambda: False)
    expected = ood_auroc(model, columns, types, {"x": few}, lambda: False)
    assert found == pytest.approx(expected, abs=2e-3)
    with pytest.raises(Stopped):
        ood_auroc(model, columns, types, {"x": few}, lambda: True)


def test_of_a_text_that_is_present_fifty_tokens_are_timed() -> None:
    """A look at whether to stop comes before each prediction."""
    model = trained(random_lines(40), MAPConfig(kind="map"))
    lines = {"text": np.array([None, "a b " * 100_000, "a"], dtype=object)}
    looks = iter([False, False])
    with pytest.raises(Stopped):
        predict_ms(model, lines, lambda: next(looks, True))
    assert predict_ms(model, lines, lambda: False) > 0


def test_a_worker_that_stops_while_it_measures_gives_the_training_back(
    context: Context, dataset: str, strange: str
) -> None:
    """Asked to stop once the fit is done; the next attempt has no need to fit."""
    job = compare_job(context, dataset, strange, epochs=3)
    first, metrics = context.jobs.parts(job.id)[0], WorkerMetrics()

    def is_fitted() -> bool:
        progress = context.jobs.get(first.id).progress
        return progress is not None and progress["fraction"] == 1

    JobRunner(context, "stopping", metrics, is_fitted).wake()
    handed_back = context.jobs.get(first.id)
    assert handed_back.status is JobStatus.QUEUED
    assert "bytes" not in handed_back.metrics
    assert context.checkpoints.exists(first.id)
    other = JobRunner(context, "next", metrics, lambda: False)
    for _ in context.jobs.queued_ids(job.id):  # the part that was given back is the last one
        other.wake()
    done = context.jobs.get(first.id)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2)
    assert 0 <= done.metrics["ood_auroc"] <= 1
