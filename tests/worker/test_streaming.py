"""A data set whose encoded columns do not fit is trained from disk, by the same job."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.context import Context, open_context
from core.jobs.jobs import JobStatus
from core.settings import load_settings
from models.artifact.files import read_card, read_model
from models.config import SWAGConfig
from tests.worker.conftest import QUICK, add_line, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

pytestmark = pytest.mark.training
ROWS = 400
MEMORY = 8_000  # bytes, less than the encoded columns of 400 rows


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    settings = load_settings(
        data_dir=tmp_path, lease_seconds=3, worker_metrics_port=0, training_memory_bytes=MEMORY
    )
    opened = open_context(settings)
    yield opened
    opened.close()


@pytest.fixture
def dataset(context: Context) -> str:
    return add_line(context, ROWS)


def test_a_streamed_job_publishes_a_version(context: Context, dataset: str) -> None:
    job = train_job(context, dataset)
    JobRunner(context, "one", WorkerMetrics(), lambda: False).wake()
    done = context.jobs.get(job.id)
    assert (done.status, done.version, done.error) == (JobStatus.SUCCEEDED, 1, None)
    assert done.progress is not None
    assert done.progress["fraction"] == pytest.approx(1.0)
    folder = context.registry.path(context.registry.get("line"))
    model, card = read_model(folder), read_card(folder)
    (note,) = [note for note in model.notes if note.startswith("streamed from disk")]
    rows = card["rows"]
    assert f"the fits read {rows['learned']} rows" in note
    assert sum(rows[name] for name in ("learned", "calibration", "held_out")) == ROWS
    assert {one.kind for one in model.baselines} == {"constant", "linear", "boosted_trees"}
    metrics = model.variants_by_prune[0.0].metrics
    assert metrics["rows"] == rows["held_out"]
    assert [path for path in context.scratch.path.iterdir() if path.is_dir()] == []


def test_a_streamed_job_goes_on_where_it_stopped(context: Context, dataset: str) -> None:
    train_job(context, dataset)
    metrics = WorkerMetrics()
    JobRunner(context, "one", metrics, lambda: False).wake()
    job = train_job(context, dataset)
    asked = iter(range(1000))
    JobRunner(context, "two", metrics, lambda: next(asked) > 30).wake()
    assert context.jobs.get(job.id).status == JobStatus.QUEUED
    assert context.checkpoints.exists(job.id)
    JobRunner(context, "three", metrics, lambda: False).wake()
    assert context.jobs.get(job.id).status == JobStatus.SUCCEEDED
    first, second = (context.registry.path(v) for v in context.registry.versions("line"))
    for name in ("prune-0.safetensors", "prune-0.5.safetensors"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_worker_with_less_memory_than_the_api_says_what_it_cannot(
    context: Context, dataset: str
) -> None:
    job = train_job(context, dataset, QUICK, (), method=SWAGConfig(kind="swag"))
    JobRunner(context, "one", WorkerMetrics(), lambda: False).wake()
    done = context.jobs.get(job.id)
    assert done.status == JobStatus.FAILED
    assert done.error is not None
    assert "method 'swag' cannot be streamed from disk" in done.error["message"]
