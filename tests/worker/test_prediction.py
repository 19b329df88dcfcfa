"""Parts of a prediction, and checkpoints that are uploaded."""

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from core.context import Context
from core.jobs.jobs import Job, JobStatus, PredictSpec
from core.jobs.results import join
from models.artifact.files import read_model
from models.training.checkpoints import CheckpointSpacing
from tests.worker.conftest import QUICK, error_of, stopping_after, train_job
from worker.checkpoint_uploader import CheckpointUploader
from worker.runner import JobRunner


@pytest.fixture
def trained(context: Context, dataset: str, runner: JobRunner) -> str:
    """A model `line` and the data set that it knows."""
    train_job(context, dataset, replace(QUICK, epochs=2))
    runner.wake()
    return dataset


def predict_job(context: Context, dataset: str, *, chunk_rows: int) -> Job:
    """A queued job over all rows; no wake-up is sent."""
    spec = PredictSpec(
        model="line",
        dataset=dataset,
        version=1,
        samples=100,
        seed=7,
        intervals=(0.9,),
        sampler="monte_carlo",
        chunk_rows=chunk_rows,
    )
    return context.jobs.create_batch(spec, context.datasets.get(dataset).rows)


def check_result(context: Context, job: Job) -> None:
    """Every row once, in order, as the model predicts them all together."""
    spec = PredictSpec.model_validate(job.spec)
    model = read_model(context.registry.path(context.registry.get("line", 1)))
    expected = model.predict(context.datasets.columns(job.dataset), spec)
    content = b"".join(join(context.results.paths(job.id)))
    table = parquet.read_table(io.BytesIO(content))
    for name, values in (
        ("mean", expected.mean),
        ("epistemic_variance", expected.variance["epistemic"]),
        ("lower_0.9", expected.intervals[0].lower),
    ):
        found = table.column(name).to_numpy()
        assert np.allclose(found, values, rtol=1e-4, atol=1e-5)  # float32, in another order


def test_a_lost_worker_loses_its_chunk(context: Context, trained: str, runner: JobRunner) -> None:
    job = predict_job(context, trained, chunk_rows=50)
    _, second, third, fourth = context.jobs.parts(job.id)
    runner.wake()
    assert context.jobs.claim(second.id, "lost", 30) is not None
    stopping_after(context, 0).wake()
    assert context.jobs.get(third.id).status is JobStatus.QUEUED
    assert context.jobs.reap(context.jobs.pulses(), max_attempts=3) == [second.id]
    for _ in (second, third, fourth):
        assert context.jobs.get(job.id).status is JobStatus.RUNNING
        runner.wake()
    assert context.jobs.get(job.id).status is JobStatus.SUCCEEDED
    assert [chunk.attempt for chunk in context.jobs.parts(job.id)] == [1, 2, 2, 1]
    check_result(context, job)


def test_chunks_that_fail_fail_the_job(context: Context, trained: str, runner: JobRunner) -> None:
    other = context.datasets.add_columns("other", {"z": [1.0, 2.0, 3.0]})[0].id
    job = predict_job(context, other, chunk_rows=1)
    for _ in context.jobs.queued_ids(job.id):
        runner.wake()
    code, message = error_of(context, job)
    assert code == "invalid_data"
    assert "'x'" in message
    assert [chunk.attempt for chunk in context.jobs.parts(job.id)] == [1, 0, 0]


def _write(folder: Path, content: bytes) -> None:
    """As a training does: a new file in place of the old one."""
    folder.mkdir(exist_ok=True)
    fresh = folder / "fit.safetensors.new"
    fresh.write_bytes(content)
    fresh.replace(folder / "fit.safetensors")
    later = folder.stat().st_mtime_ns + 1_000_000  # some file systems count in ticks
    os.utime(folder, ns=(later, later))


def test_a_new_checkpoint_is_uploaded_once(context: Context, dataset: str, tmp_path: Path) -> None:
    job = train_job(context, dataset)
    claim = context.jobs.claim(job.id, "worker", 60.0)
    assert claim is not None
    folder, copy = tmp_path / "checkpoints", tmp_path / "copy"
    uploader, seldom = (
        CheckpointUploader(context.checkpoints, claim, folder, spacing)
        for spacing in (CheckpointSpacing(0.0), CheckpointSpacing(60.0, lambda: 0.0))
    )
    uploader.upload_if_due()
    _write(folder, b"first")
    seldom.upload_if_due()
    assert not context.checkpoints.exists(job.id)
    for content in (b"first", b"second"):
        _write(folder, content)
        uploader.upload_if_due()
        (name,) = context.store.children(f"checkpoints/{job.id}")
        uploader.upload_if_due()
        assert context.store.children(f"checkpoints/{job.id}") == [name]
    assert context.checkpoints.fetch(job.id, copy)
    assert (copy / "fit.safetensors").read_bytes() == b"second"
