"""A data set whose encoded columns do not fit is trained from disk, by the same job."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.context import Context
from core.jobs.jobs import JobStatus
from models.artifact.files import read_card, read_model
from models.config import SWAGConfig
from tests.worker.conftest import QUICK, add_line, error_of, opened, stopping_after, train_job
from worker.runner import JobRunner

ROWS = 400
MEMORY = 8_000  # bytes, less than the encoded columns of 400 rows


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, training_memory_bytes=MEMORY) as made:
        yield made


@pytest.fixture
def dataset(context: Context) -> str:
    return add_line(context, ROWS)


def test_a_streamed_job_publishes_a_version_wherever_it_was_stopped(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    train_job(context, dataset)
    runner.wake()
    stopped = train_job(context, dataset)
    stopping_after(context, 30).wake()
    assert context.jobs.get(stopped.id).status == JobStatus.QUEUED
    assert context.checkpoints.exists(stopped.id)
    runner.wake()
    second, first = (context.registry.path(v) for v in context.registry.versions("line"))
    for name in ("prune-0.safetensors", "prune-0.5.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    model, rows = read_model(first), read_card(first)["rows"]
    (note,) = [note for note in model.notes if note.startswith("streamed from disk")]
    assert f"the fits read {rows['learned']} rows" in note
    assert sum(rows[name] for name in ("learned", "calibration", "held_out")) == ROWS
    assert {one.kind for one in model.baselines} == {"constant", "linear", "boosted_trees"}
    assert model.variants_by_prune[0.0].metrics["rows"] == rows["held_out"]
    assert [path for path in context.scratch.path.iterdir() if path.is_dir()] == []


def test_a_worker_with_less_memory_than_the_api_says_what_it_cannot(
    context: Context, dataset: str, runner: JobRunner
) -> None:
    job = train_job(context, dataset, QUICK, (), method=SWAGConfig(kind="swag"))
    runner.wake()
    assert "'swag'" in error_of(context, job)[1]
