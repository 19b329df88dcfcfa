"""A worker carries out jobs of every kind."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.context import Context
from core.datasets.dataset import Provenance
from core.jobs.jobs import AcquireSpec, EvaluateSpec, Job, JobStatus
from models.artifact.files import read_card, read_model
from models.config import MLEConfig
from tests.worker.conftest import QUICK, add_line, error_of, train_job
from worker import acquisition
from worker.runner import JobRunner, describe

WILD = replace(QUICK, optimizer="sgd", learning_rate=100.0, gradient_clip=1e6, epochs=50)


def test_a_training_is_published(context: Context, dataset: str, runner: JobRunner) -> None:
    """Once, however often the worker is woken; the notes of the job come before the model's."""
    training = replace(QUICK, calibration_fraction=0.0)  # which the model has a note on
    job = train_job(context, dataset, training, alias="champion", notes=("column 'id' names rows",))
    for _ in range(3):
        runner.wake()
    done = context.jobs.get(job.id)
    assert (done.status, done.version, done.error) == (JobStatus.SUCCEEDED, 1, None)
    assert done.progress is not None
    assert done.progress["fraction"] == pytest.approx(1.0)
    assert len(context.registry.versions("line")) == 1
    version = context.registry.get("line", "champion")
    assert version.job == job.id
    model = read_model(context.registry.path(version))
    assert model.variants == (0.0, 0.5)
    assert (model.notes[0], len(model.notes) > 1) == ("column 'id' names rows", True)
    assert version.description["notes"] == list(model.notes)
    assert not context.checkpoints.exists(job.id)
    kinds = [event.type for event in context.jobs.events(job.id)]
    assert kinds[0] == kinds[-1] == "state"
    assert {"progress", "metrics"} < set(kinds)


def test_a_diverging_job_publishes_nothing(context: Context, runner: JobRunner) -> None:
    """The advice names the values that are far from all others."""
    x = np.random.default_rng(0).normal(size=200)
    x[7] = 1e6
    columns = {"x": x.tolist(), "y": np.arange(200.0).tolist()}
    job = train_job(context, context.datasets.add_columns("far", columns)[0].id, WILD)
    runner.wake()
    code, message = error_of(context, job)
    assert code == "diverged"
    assert "learning_rate, which was 100; column 'x' is 1000000 in 1 row" in message
    assert not context.registry.list().data


def test_a_job_of_useless_rows_says_so(context: Context, runner: JobRunner) -> None:
    constant = {"x": [1.0] * 30, "y": [float(i) for i in range(30)]}
    job = train_job(context, context.datasets.add_columns("flat", constant)[0].id)
    runner.wake()
    assert error_of(context, job)[0] == "invalid_data"


def test_an_unknown_error_shows_no_internals() -> None:
    code, message = describe(RuntimeError("secret row 17"))
    assert code == "internal"
    assert "secret" not in message
    assert describe(MemoryError())[0] == "out_of_memory"


def test_a_job_waits_for_a_store_that_is_away(
    context: Context, dataset: str, runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is trained, but its model finds no place; the next attempt begins at the end."""
    monkeypatch.setattr("worker.runner.PAUSE_SECONDS", 0.0)
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


def test_an_evaluation_scores_a_version(
    context: Context, dataset: str, runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks, of which the last one has a single row."""
    monkeypatch.setattr("worker.evaluation.BLOCK_ROWS", 7)
    train_job(context, dataset)
    runner.wake()
    other = add_line(context, 50)
    job = context.jobs.create(EvaluateSpec(model="line", dataset=other, version=1, prune=0.5))
    runner.wake()
    done = context.jobs.get(job.id)
    assert (done.status, done.version) == (JobStatus.SUCCEEDED, 1)
    assert done.metrics["rows"] == 50
    model = read_model(context.registry.path(context.registry.get("line")))
    expected = model.evaluate(context.datasets.columns(other), prune=0.5)
    assert done.metrics["log_likelihood"] == pytest.approx(expected["log_likelihood"], rel=1e-4)


def test_words_of_yes_and_no_are_classes_and_the_card_has_the_source(
    context: Context, runner: JobRunner, tmp_path: Path
) -> None:
    rows = [f"{x},{'Ja' if x % 3 else 'Nein'}" for x in range(120)]
    path = tmp_path / "paid.csv"
    path.write_text("\n".join(["x,y", *rows]), encoding="utf-8")
    provenance = Provenance({"uri": f"file://{path}"}, {"read_at": "2026-01-02T03:04:05+00:00"})
    stored, _ = context.datasets.add("paid", "text/csv", path, provenance=provenance)
    assert [column.type for column in stored.columns] == ["number", "boolean"]
    train_job(context, stored.id)
    runner.wake()
    version = context.registry.get("line")
    assert version.description["classes"] == ["Ja", "Nein"]
    card = read_card(context.registry.path(version))
    assert card["source"] == provenance.source | {"snapshot": provenance.snapshot}
    evaluation = context.jobs.create(EvaluateSpec(model="line", dataset=stored.id, version=1))
    runner.wake()
    done = context.jobs.get(evaluation.id)
    assert (done.status, done.metrics["rows"]) == (JobStatus.SUCCEEDED, 120)


@pytest.fixture
def pool(context: Context, tmp_path: Path) -> str:
    """Far from the training rows (x from −1 to 1), and near; the last one has a label."""
    x = [0.0, 0.1, 6.0, 6.0, -5.0, 0.2]
    path = tmp_path / "pool.csv"
    path.write_text("x,y\n" + "".join(f"{value},\n" for value in x) + "9.0,3.0\n")
    return context.datasets.add("pool", "text/csv", path)[0].id


def _run(context: Context, runner: JobRunner, pool: str, **spec: object) -> Job:
    job = context.jobs.create(AcquireSpec(model="line", dataset=pool, version=1, **spec))  # type: ignore[arg-type]
    runner.wake()
    return context.jobs.get(job.id)


def test_rows_far_from_training_tell_most_and_labelled_ones_are_left_out(
    context: Context,
    runner: JobRunner,
    dataset: str,
    pool: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal rows are both chosen only if each is chosen alone; blocks of rows change nothing."""
    train_job(context, dataset)
    runner.wake()
    done = _run(context, runner, pool, k=4)
    assert (done.status, done.version) == (JobStatus.SUCCEEDED, 1)
    found = done.metrics
    assert found["candidates"] == 6
    assert found["rows"][0] == 2
    assert 6 not in found["rows"]
    assert found["joint_information"] == pytest.approx(sum(found["information"]))
    assert (np.diff(found["information"]) <= 0).all()

    alone = _run(context, runner, pool, k=2, batch=False).metrics
    assert sorted(alone["rows"]) == [2, 3]
    assert alone["joint_information"] < sum(alone["information"])
    together = _run(context, runner, pool, k=2).metrics
    assert together["joint_information"] >= alone["joint_information"]

    monkeypatch.setattr(acquisition, "BLOCK_VALUES", 2 * acquisition.SAMPLES)
    assert _run(context, runner, pool, k=4).metrics["rows"] == found["rows"]

    labelled = _run(context, runner, dataset, k=2)
    assert "every row has its 'y'" in error_of(context, labelled)[1]


def test_a_point_estimate_has_nothing_to_learn_from_labels(
    context: Context, runner: JobRunner, dataset: str, pool: str
) -> None:
    train_job(context, dataset, method=MLEConfig(kind="mle"), pruning=())
    runner.wake()
    assert "uncertain weights" in error_of(context, _run(context, runner, pool, k=2))[1]
