"""One job in this process: what the row says at its end, whatever happened to it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.context import Context
from core.datasets.dataset import Provenance
from core.jobs.jobs import EvaluateSpec, JobStatus
from models.artifact.files import read_card, read_model
from tests.worker.conftest import QUICK, add_line, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner, describe


@pytest.fixture
def runner(context: Context) -> JobRunner:
    return JobRunner(context, "test-worker", WorkerMetrics(), lambda: False)


def test_a_training_job_publishes_a_version(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    job = train_job(context, dataset, alias="champion")
    runner.wake()
    done = context.jobs.get(job.id)
    assert (done.status, done.version, done.error) == (JobStatus.SUCCEEDED, 1, None)
    assert done.progress is not None
    assert done.progress["fraction"] == pytest.approx(1.0)
    version = context.registry.get("line", "champion")
    assert version.job == job.id
    model = read_model(context.registry.path(version))
    assert model.variants == (0.0, 0.5)
    assert not context.checkpoints.exists(job.id)
    kinds = [event.type for event in context.jobs.events(job.id)]
    assert kinds[0] == kinds[-1] == "state"
    assert {"progress", "metrics"} < set(kinds)


def test_a_version_has_the_notes_of_its_job_first(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    config = replace(QUICK, calibration_fraction=0.0)  # which the model has a note on
    train_job(context, dataset, config)
    runner.wake()
    own = read_model(context.registry.path(context.registry.get("line"))).notes
    assert own
    train_job(context, dataset, config, notes=("column 'id' names rows", own[0]))
    runner.wake()
    version = context.registry.get("line")
    assert read_model(context.registry.path(version)).notes == ("column 'id' names rows", *own)
    assert version.description["notes"] == ["column 'id' names rows", *own]


def test_a_job_that_is_woken_twice_runs_once(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    train_job(context, dataset)
    for _ in range(3):
        runner.wake()
    assert len(context.registry.versions("line")) == 1


def test_the_same_request_gives_the_same_weights(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    sums = []
    for _ in range(2):
        train_job(context, dataset)
        runner.wake()
        path = context.registry.path(context.registry.get("line"))
        sums.append((path / "prune-0.safetensors").read_bytes())
    assert sums[0] == sums[1]


def test_a_diverging_job_fails_with_advice_and_publishes_nothing(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    wild = replace(QUICK, optimizer="sgd", learning_rate=100.0, gradient_clip=1e6, epochs=50)
    job = train_job(context, dataset, wild)
    runner.wake()
    failed = context.jobs.get(job.id)
    assert failed.status == JobStatus.FAILED
    assert failed.error is not None
    assert failed.error["code"] == "diverged"
    assert "learning_rate" in failed.error["message"]
    assert not context.registry.list().data


def test_a_diverging_job_names_the_extreme_values(context: Context, runner: JobRunner) -> None:
    x = np.random.default_rng(0).normal(size=200)
    x[7] = 1e6
    columns = {"x": x.tolist(), "y": np.arange(200.0).tolist()}
    dataset = context.datasets.add_columns("far", columns)[0].id
    wild = replace(QUICK, optimizer="sgd", learning_rate=100.0, gradient_clip=1e6, epochs=50)
    job = train_job(context, dataset, wild)
    runner.wake()
    failed = context.jobs.get(job.id)
    assert failed.error is not None
    assert failed.error["code"] == "diverged"
    assert "learning_rate, which was 100; column 'x' is 1000000 in 1 row" in failed.error["message"]


def test_a_job_whose_rows_cannot_be_learned_from_says_so(
    context: Context, runner: JobRunner
) -> None:
    constant = {"x": [1.0] * 30, "y": [float(i) for i in range(30)]}
    dataset = context.datasets.add_columns("flat", constant)[0].id
    job = train_job(context, dataset)
    runner.wake()
    error = context.jobs.get(job.id).error
    assert error is not None
    assert error["code"] == "invalid_data"
    assert "constant" in error["message"]


def test_an_unknown_error_shows_no_internals() -> None:
    code, message = describe(RuntimeError("secret row 17"))
    assert code == "internal"
    assert "secret" not in message
    assert describe(MemoryError())[0] == "out_of_memory"


def test_a_job_given_back_goes_on_where_it_stopped(context: Context, dataset: str) -> None:
    train_job(context, dataset)
    metrics = WorkerMetrics()
    JobRunner(context, "one", metrics, lambda: False).wake()

    job = train_job(context, dataset)
    asked = iter(range(1000))
    stopping = JobRunner(context, "two", metrics, lambda: next(asked) > 6)
    stopping.wake()
    assert context.jobs.get(job.id).status == JobStatus.QUEUED
    assert context.checkpoints.exists(job.id)
    JobRunner(context, "three", metrics, lambda: False).wake()
    done = context.jobs.get(job.id)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2)
    first, second = (context.registry.path(v) for v in context.registry.versions("line"))
    for name in ("prune-0.safetensors", "prune-0.5.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_job_waits_for_a_store_that_is_away(
    context: Context, dataset: str, runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is trained, but its model finds no place; the next attempt begins at the end."""
    monkeypatch.setattr("worker.runner.PAUSE_SECONDS", 0.3)
    in_the_way = context.settings.artifact_root / "models"
    in_the_way.touch()
    job = train_job(context, dataset)
    runner.wake()
    waiting = context.jobs.get(job.id)
    assert (waiting.status, waiting.error) == (JobStatus.QUEUED, None)
    assert context.checkpoints.exists(job.id)
    in_the_way.unlink()
    runner.wake()
    assert context.jobs.get(job.id).status == JobStatus.SUCCEEDED
    assert not context.checkpoints.exists(job.id)


@pytest.mark.parametrize("block", [7, 2**16])
def test_an_evaluation_scores_a_version(
    context: Context,
    dataset: str,
    runner: JobRunner,
    monkeypatch: pytest.MonkeyPatch,
    block: int,
) -> None:
    monkeypatch.setattr("worker.evaluation.BLOCK_ROWS", block)
    train_job(context, dataset)
    runner.wake()
    other = add_line(context, 50)
    spec = EvaluateSpec(model="line", dataset=other, version=1, prune=0.5)
    job = context.jobs.create(spec)
    runner.wake()
    done = context.jobs.get(job.id)
    assert (done.status, done.version) == (JobStatus.SUCCEEDED, 1)
    assert done.metrics["rows"] == 50
    model = read_model(context.registry.path(context.registry.get("line")))
    columns = context.datasets.columns(other)
    assert done.metrics["log_likelihood"] == pytest.approx(
        model.evaluate(columns, prune=0.5)["log_likelihood"]
    )


def test_a_target_of_yes_and_no_has_these_words_as_classes(
    context: Context, runner: JobRunner, tmp_path: Path
) -> None:
    rows = [f"{x},{'Ja' if x % 3 else 'Nein'}" for x in range(120)]
    path = tmp_path / "paid.csv"
    path.write_text("\n".join(["x,y", *rows]), encoding="utf-8")
    stored, _ = context.datasets.add("paid", "text/csv", path)
    assert [column.type for column in stored.columns] == ["number", "boolean"]
    train_job(context, stored.id)
    runner.wake()
    version = context.registry.get("line")
    assert version.description["classes"] == ["Ja", "Nein"]
    evaluation = context.jobs.create(EvaluateSpec(model="line", dataset=stored.id, version=1))
    runner.wake()
    done = context.jobs.get(evaluation.id)
    assert (done.status, done.metrics["rows"]) == (JobStatus.SUCCEEDED, 120)


def test_a_card_has_the_source_of_its_rows(
    context: Context, runner: JobRunner, tmp_path: Path
) -> None:
    file = tmp_path / "line.csv"
    file.write_text("x,y\n" + "\n".join(f"{i / 50},{3 * i / 50 + i % 3}" for i in range(100)))
    provenance = Provenance({"uri": f"file://{file}"}, {"read_at": "2026-01-02T03:04:05+00:00"})
    dataset, _ = context.datasets.add("line", "text/csv", file, provenance=provenance)
    train_job(context, dataset.id)
    runner.wake()
    card = read_card(context.registry.path(context.registry.get("line")))
    assert card["source"] == provenance.source | {"snapshot": provenance.snapshot}
